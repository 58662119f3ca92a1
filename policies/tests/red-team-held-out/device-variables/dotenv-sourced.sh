#!/bin/bash
#SBATCH --job-name=dotenv-sourced
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf '%s\n' 'OMP_NUM_THREADS=4' 'CUDA_VISIBLE_DEVICES=2' > settings.env
set -a
. ./settings.env
set +a
python train.py
