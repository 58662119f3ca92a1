#!/bin/bash
#SBATCH --job-name=srun-bash-procid
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
srun -n2 bash -c 'export CUDA_VISIBLE_DEVICES=$((SLURM_LOCALID % 2)); python train.py'
