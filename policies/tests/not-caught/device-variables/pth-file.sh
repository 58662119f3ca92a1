#!/bin/bash
#SBATCH --job-name=pth-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
site=$(python -m site --user-site)
mkdir -p "$site"
echo "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '1'" > "$site/pick.pth"
python train.py
