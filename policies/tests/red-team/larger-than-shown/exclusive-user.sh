#!/bin/bash
#SBATCH --exclus=user
#SBATCH --gpus=1
#SBATCH --mem=16G
python t.py
