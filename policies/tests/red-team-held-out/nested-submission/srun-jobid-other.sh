#!/bin/bash
#SBATCH --job-name=srun-jobid-other
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
other=$(squeue -h -u "$USER" -n big -o %A | head -1)
srun --jobid="$other" --overlap python train.py
