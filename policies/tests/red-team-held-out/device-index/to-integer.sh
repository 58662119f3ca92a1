#!/bin/bash
#SBATCH --job-name=to-integer
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import torch, train
gpu = 1
model = train.build().to(gpu)
train.fit(model)
PY
