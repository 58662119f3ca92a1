#!/bin/bash
#SBATCH --job-name=mapfile-array
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mapfile -t CUDA_VISIBLE_DEVICES < <(printf '6\n')
env "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES[0]}" python train.py
