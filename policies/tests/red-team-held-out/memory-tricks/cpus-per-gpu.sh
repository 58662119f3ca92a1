#!/bin/bash
#SBATCH --nodes=1 --gpus=2 --time=02:00:00
#SBATCH --cpus-per-gpu=16
#SBATCH --mem-per-cpu=4G
python train.py
