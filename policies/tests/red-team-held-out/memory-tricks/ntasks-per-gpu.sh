#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --ntasks-per-gpu=8 --mem-per-cpu=4G
srun python train.py
