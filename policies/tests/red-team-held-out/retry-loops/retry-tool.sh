#!/bin/bash
#SBATCH --job-name=retry-tool
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
retry --times=10 --delay=60 -- python train.py
