#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G
#SBATCH --time=0
python train.py
