#!/bin/bash
#SBATCH --job-name=python-map-setitem
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, train
list(map(os.environ.__setitem__, ("CUDA_VISIBLE_DEVICES",), ("1",)))
train.main()
PY
