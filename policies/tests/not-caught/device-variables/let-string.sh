#!/bin/bash
#SBATCH --job-name=let-string
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
let "CUDA_VISIBLE_DEVICES = 1 + 1"
python train.py
