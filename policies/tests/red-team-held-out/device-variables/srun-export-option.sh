#!/bin/bash
#SBATCH --job-name=srun-export-option
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
srun --export=ALL,OMP_NUM_THREADS=4,CUDA_VISIBLE_DEVICES=2 python train.py
