#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
# the real value
#SBATCH --mem=128G
python t.py
