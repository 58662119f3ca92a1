#!/bin/bash
#SBATCH --job-name=indirect-assign-eval
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
v=VISIBLE
eval "export CUDA_${v}_DEVICES=\"0\""
python train.py
