#!/bin/bash
#SBATCH --gpus=1
#SBATCH --ntasks-per-gpu=8
#SBATCH --mem-per-cpu=4G
srun python t.py
