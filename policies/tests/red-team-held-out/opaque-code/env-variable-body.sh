#!/bin/bash
#SBATCH --job-name=env-variable-body
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
bash -c "$(squeue -h -j "$SLURM_JOB_ID" -o %k)"
