#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=65536
#SBATCH --time=02:00:00
python train.py
