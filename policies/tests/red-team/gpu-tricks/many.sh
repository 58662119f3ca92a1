#!/bin/bash
#SBATCH --gpus=16
#SBATCH --mem-per-gpu=8G
srun python t.py
