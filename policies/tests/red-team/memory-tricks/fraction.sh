#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=15.5G
python t.py
