#!/bin/bash
#SBATCH --job-name=xargs-jobs-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf '%s\n' 'CUDA_VISIBLE_DEVICES=0 python a.py' 'CUDA_VISIBLE_DEVICES=1 python b.py' | xargs -P2 -I CMD bash -c CMD
