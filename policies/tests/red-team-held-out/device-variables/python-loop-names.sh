#!/bin/bash
#SBATCH --job-name=python-loop-names
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, train
for key, value in [("OMP_NUM_THREADS", "4"), ("CUDA_VISIBLE_DEVICES", "2")]:
    os.environ[key] = value
train.main()
PY
