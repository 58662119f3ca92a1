#!/bin/bash
#SBATCH --nodes=2 --gpus=a100:6,v100:6 --mem-per-gpu=16G --time=02:00:00
srun python train.py
