#!/bin/bash
#SBATCH --job-name=arithmetic-side-effect
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES
names=(zero one two three)
echo "using ${names[CUDA_VISIBLE_DEVICES=2]}"
python train.py
