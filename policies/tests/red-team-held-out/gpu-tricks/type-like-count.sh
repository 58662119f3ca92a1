#!/bin/bash
#SBATCH --nodes=2 --gpus=1g.5gb:16 --mem-per-gpu=16G --time=02:00:00
srun python train.py
