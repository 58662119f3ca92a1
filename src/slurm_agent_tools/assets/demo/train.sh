#!/bin/bash
#SBATCH --job-name=baseline
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --cpus-per-task=1
#SBATCH --output=logs/slurm/%x-%j.out
python3 train.py --epochs 4
