#!/bin/bash
#SBATCH --nodes=4 --gpus-per-node=4 --mem-per-gpu=16G --time=02:00:00
srun python train.py
