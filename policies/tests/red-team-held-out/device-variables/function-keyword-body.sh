#!/bin/bash
#SBATCH --job-name=function-keyword-body
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
work() { python train.py "$@"; }
CUDA_VISIBLE_DEVICES=2 work --epochs 3
