#!/bin/bash
#SBATCH --job-name=heredoc-to-bash-stdin
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
{ cat <<'EOF'
CUDA_VISIBLE_DEVICES=1
export CUDA_VISIBLE_DEVICES
python train.py
EOF
} | bash -s
