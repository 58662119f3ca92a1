#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=24577M
#SBATCH --time=02:00:00
python train.py
