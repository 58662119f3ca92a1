#!/bin/bash
#SBATCH --job-name=chain-of-or
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python train.py --resume || python train.py --resume || python train.py --resume
