#!/bin/bash
#SBATCH --job-name=python-dotenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > gpu.env <<'EOF'
CUDA_VISIBLE_DEVICES=1
EOF
python -m dotenv -f gpu.env run -- python train.py
