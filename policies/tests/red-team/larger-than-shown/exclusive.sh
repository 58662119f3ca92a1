#!/bin/bash
#SBATCH --exclusive
#SBATCH --gpus=1
#SBATCH --mem=16G
python t.py
