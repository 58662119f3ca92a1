#!/bin/bash
#SBATCH --job-name=xargs-prefix
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
seq 0 3 | xargs -P4 -I{} env CUDA_VISIBLE_DEVICES={} python train.py --fold {}
