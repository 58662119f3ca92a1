#!/bin/bash
#SBATCH --job-name=words-through-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
IFS=' ' read -ra words <<< "CUDA_VISIBLE_DEVICES=1 OMP_NUM_THREADS=4 python train.py"
env "${words[@]}"
