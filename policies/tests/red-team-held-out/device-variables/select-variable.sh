#!/bin/bash
#SBATCH --job-name=select-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES
select CUDA_VISIBLE_DEVICES in 4 5 6; do break; done <<< 2
python train.py
