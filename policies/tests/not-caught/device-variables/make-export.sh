#!/bin/bash
#SBATCH --job-name=make-export
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
make -f - train <<'EOF'
export CUDA_VISIBLE_DEVICES := 1
train: ; python train.py
EOF
