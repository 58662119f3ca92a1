#!/bin/bash
#SBATCH --job-name=scancel-by-xargs
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
squeue -h -u "$USER" -o %i | grep -v "$SLURM_JOB_ID" | xargs --no-run-if-empty scancel
