#!/bin/bash
#SBATCH --output=train.py
#SBATCH --mem=4G
./a
