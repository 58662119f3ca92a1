#!/bin/bash
#SBATCH --nodes=3 --mem-per-gpu=16G --time=02:00:00
#SBATCH --gpus-per-node=1
#SBATCH --gpus-per-n a100:4
srun python train.py
