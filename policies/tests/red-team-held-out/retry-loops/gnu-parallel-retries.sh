#!/bin/bash
#SBATCH --job-name=gnu-parallel-retries
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
parallel --retries 5 -j1 python train.py --seed {} ::: 1 2 3
