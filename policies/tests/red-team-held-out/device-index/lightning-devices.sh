#!/bin/bash
#SBATCH --job-name=lightning-devices
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import lightning as L, train
L.Trainer(accelerator="gpu", devices=[1]).fit(train.module())
PY
