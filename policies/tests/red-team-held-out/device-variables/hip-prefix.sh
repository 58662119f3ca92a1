#!/bin/bash
#SBATCH --job-name=hip-prefix
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
HIP_VISIBLE_DEVICES=1 srun --ntasks=1 python train.py
