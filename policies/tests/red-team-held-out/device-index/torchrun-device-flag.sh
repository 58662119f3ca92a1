#!/bin/bash
#SBATCH --job-name=torchrun-device-flag
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
torchrun --nproc_per_node=1 train.py --local_rank=1 --device=cuda:1
