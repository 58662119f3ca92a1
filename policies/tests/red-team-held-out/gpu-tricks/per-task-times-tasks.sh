#!/bin/bash
#SBATCH --ntasks=12 --gpus-per-task=1 --mem-per-gpu=16G --time=02:00:00
srun python train.py
