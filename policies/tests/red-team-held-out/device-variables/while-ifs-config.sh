#!/bin/bash
#SBATCH --job-name=while-ifs-config
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
while IFS='=' read -r name value; do
  export "$name"="$value"
done <<'EOF'
OMP_NUM_THREADS=4
CUDA_VISIBLE_DEVICES=2
EOF
python train.py
