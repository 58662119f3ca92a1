#!/bin/bash
#SBATCH --job-name=python-while
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import subprocess, time
while subprocess.call(["python", "train.py", "--resume"]) != 0:
    time.sleep(60)
PY
