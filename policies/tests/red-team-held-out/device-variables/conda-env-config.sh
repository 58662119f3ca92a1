#!/bin/bash
#SBATCH --job-name=conda-env-config
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
conda env config vars set -n torch CUDA_VISIBLE_DEVICES=2
conda run -n torch python train.py
