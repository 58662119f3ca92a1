#!/bin/bash
#SBATCH --job-name=export-xargs-dotenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
echo "CUDA_VISIBLE_DEVICES=1" > extra.env
export $(xargs < extra.env)
python train.py
