#!/bin/bash
#SBATCH --job-name=data-parallel
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import torch, train
model = torch.nn.DataParallel(train.build(), device_ids=list(range(1, 3)))
train.fit(model)
PY
