#!/bin/bash
#SBATCH --job-name=accelerate-ids
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
accelerate launch --num_processes 2 --gpu_ids 1,3 train.py
