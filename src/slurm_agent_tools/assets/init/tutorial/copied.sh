#!/bin/bash
#SBATCH --job-name=copied
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --mem=20G
#SBATCH --output=logs/slurm/%x-%j.out
export CUDA_VISIBLE_DEVICES=0
python3 train.py
