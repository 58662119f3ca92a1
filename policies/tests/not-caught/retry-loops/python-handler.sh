#!/bin/bash
#SBATCH --job-name=python-handler
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, sys, train
try:
    train.main()
except Exception:
    os.execv("/bin/bash", ["bash", "-c", "python train.py --resume || python train.py --resume"])
PY
