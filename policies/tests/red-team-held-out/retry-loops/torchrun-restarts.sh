#!/bin/bash
#SBATCH --job-name=torchrun-restarts
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
torchrun --nproc_per_node 1 --max_restarts 5 train.py
