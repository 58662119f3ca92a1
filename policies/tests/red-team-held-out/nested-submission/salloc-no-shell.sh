#!/bin/bash
#SBATCH --job-name=salloc-no-shell
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
salloc --no-shell --gpus=8 --time=3-00
