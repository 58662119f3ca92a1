#!/bin/bash
#SBATCH --job-name=fish-set
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
fish -c 'set -gx CUDA_VISIBLE_DEVICES 1; python train.py'
