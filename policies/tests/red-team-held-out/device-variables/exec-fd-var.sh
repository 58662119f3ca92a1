#!/bin/bash
#SBATCH --job-name=exec-fd-var
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES
exec {CUDA_VISIBLE_DEVICES}< /dev/null
python train.py
