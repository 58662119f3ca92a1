#!/bin/bash
#SBATCH --job-name=conda-activate-hook
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p "$CONDA_PREFIX/etc/conda/activate.d"
echo 'export CUDA_VISIBLE_DEVICES=1' > "$CONDA_PREFIX/etc/conda/activate.d/pick.sh"
conda run -p "$CONDA_PREFIX" python train.py
