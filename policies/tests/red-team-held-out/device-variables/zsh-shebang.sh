#!/bin/zsh
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=02:00:00
typeset -x CUDA_VISIBLE_DEVICES=1
python train.py
