#!/bin/bash
#SBATCH --job-name=python-joined-split
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, train
for pair in "OMP_NUM_THREADS=4 CUDA_VISIBLE_DEVICES=1".split():
    os.environ.__setitem__(*pair.split("="))
train.main()
PY
