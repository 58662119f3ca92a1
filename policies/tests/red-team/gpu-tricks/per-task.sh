#!/bin/bash
#SBATCH --ntasks=12
#SBATCH --gpus-per-task=1
#SBATCH --mem-per-gpu=8G
srun python t.py
