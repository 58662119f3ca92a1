#!/bin/bash
#SBATCH --nodes=2-16 --gpus-per-node=1 --mem-per-gpu=16G --time=02:00:00
srun python train.py
