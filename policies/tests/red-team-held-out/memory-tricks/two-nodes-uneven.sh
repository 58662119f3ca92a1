#!/bin/bash
#SBATCH --nodes=2 --gpus=4 --time=02:00:00
#SBATCH --mem=32G
srun python train.py
