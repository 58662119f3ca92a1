#!/bin/bash
#SBATCH --job-name=srun-pty-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
opts=(--pt"y" -u)
srun "${opts[@]}" bash -i
