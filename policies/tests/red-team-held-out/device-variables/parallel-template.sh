#!/bin/bash
#SBATCH --job-name=parallel-template
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
parallel -j4 'CUDA_VISIBLE_DEVICES=$(({%} - 1)) python train.py --seed {}' ::: 1 2 3 4 5 6 7 8
