#!/bin/bash
#SBATCH --ntasks=10 --tres-per-task=cpu:4,gres/gpu:1 --mem-per-gpu=16G --time=02:00:00
srun python train.py
