#!/bin/bash
#SBATCH --job-name=fstring-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import train
index = 2
train.main(device=f"cuda:{index}")
PY
