#!/bin/bash
#SBATCH --job-name=wide
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=32G
#SBATCH --time=30
#SBATCH --output=logs/slurm/%x-%j.out
python3 train.py
