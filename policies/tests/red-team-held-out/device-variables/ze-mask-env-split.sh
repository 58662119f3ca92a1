#!/bin/bash
#SBATCH --job-name=ze-mask-env-split
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
env -S 'ZE_AFFINITY_MASK=0.1 python train.py'
