#!/bin/bash
#SBATCH -a0-9
#SBATCH --mem=4G
python t.py
