#!/bin/bash
#SBATCH --nodes=3 --gres=gpu:nvidia_a100_80gb:4 --mem-per-gpu=16G --time=02:00:00
srun python train.py
