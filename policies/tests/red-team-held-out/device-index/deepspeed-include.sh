#!/bin/bash
#SBATCH --job-name=deepspeed-include
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
deepspeed --include localhost:0,2 train.py
