#!/bin/bash
#SBATCH --job-name=requeue-hold
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python train.py || scontrol requeuehold "$SLURM_JOB_ID"
