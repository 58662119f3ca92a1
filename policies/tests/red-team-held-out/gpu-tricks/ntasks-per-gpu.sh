#!/bin/bash
#SBATCH --nodes=1 --gpus=4 --mem-per-gpu=16G --time=02:00:00 --ntasks-per-tres=8 --overcommit
srun python train.py
