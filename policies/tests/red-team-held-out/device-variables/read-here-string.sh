#!/bin/bash
#SBATCH --job-name=read-here-string
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
set -a
read -r CUDA_VISIBLE_DEVICES <<< "3"
set +a
srun python train.py
