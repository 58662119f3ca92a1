#!/bin/bash
#SBATCH --job-name=torchx-slurm
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
torchx run --scheduler slurm -cfg partition=gpu,time=72:00:00 dist.ddp -j 4x8 --script train.py
