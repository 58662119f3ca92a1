#!/bin/bash
#SBATCH --job-name=strigger
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
strigger --set --jobid="$SLURM_JOB_ID" --fini --program="$PWD/again.sh"
python train.py
