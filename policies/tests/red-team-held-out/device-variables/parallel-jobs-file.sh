#!/bin/bash
#SBATCH --job-name=parallel-jobs-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > jobs.txt <<'EOF'
CUDA_VISIBLE_DEVICES=0 python train.py --seed 1
CUDA_VISIBLE_DEVICES=1 python train.py --seed 2
EOF
parallel -j2 < jobs.txt
