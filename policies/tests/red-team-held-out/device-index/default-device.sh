#!/bin/bash
#SBATCH --job-name=default-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import torch, train
torch.set_default_device("cuda:{}".format(1))
train.main()
PY
