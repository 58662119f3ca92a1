#!/bin/bash
#SBATCH --job-name=sitecustomize
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p hooks
cat > hooks/sitecustomize.py <<'PY'
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "2"
PY
export PYTHONPATH=$PWD/hooks
python train.py
