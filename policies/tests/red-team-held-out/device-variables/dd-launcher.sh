#!/bin/bash
#SBATCH --job-name=dd-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
dd of=launch.sh status=none <<'EOF'
CUDA_VISIBLE_DEVICES=1 python train.py
EOF
sh launch.sh
