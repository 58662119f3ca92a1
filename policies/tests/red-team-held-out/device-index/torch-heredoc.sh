#!/bin/bash
#SBATCH --job-name=torch-heredoc
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import torch
device = torch.device("cuda:%d" % 3)
import train
train.main(device)
PY
