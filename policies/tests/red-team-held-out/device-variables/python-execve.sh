#!/bin/bash
#SBATCH --job-name=python-execve
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, sys
env = {**os.environ, "CUDA_VISIBLE_" + "DEVICES": "0"}
os.execve(sys.executable, ["python", "train.py"], env)
PY
