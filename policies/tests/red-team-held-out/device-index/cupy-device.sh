#!/bin/bash
#SBATCH --job-name=cupy-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import cupy, train
cupy.cuda.Device(1).use()
train.main()
PY
