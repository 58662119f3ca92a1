#!/bin/bash
#SBATCH --ntasks=10
#SBATCH --tres-per-task=gres/gpu:1
#SBATCH --mem-per-gpu=8G
srun python t.py
