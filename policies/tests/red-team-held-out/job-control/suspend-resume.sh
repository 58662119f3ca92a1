#!/bin/bash
#SBATCH --job-name=suspend-resume
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
scontrol suspend 4711
python train.py
