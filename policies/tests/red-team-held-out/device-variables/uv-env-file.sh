#!/bin/bash
#SBATCH --job-name=uv-env-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf 'CUDA_VISIBLE_DEVICES=%s\n' 1 > gpu.env
uv run --env-file gpu.env train.py
