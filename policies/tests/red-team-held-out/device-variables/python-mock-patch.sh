#!/bin/bash
#SBATCH --job-name=python-mock-patch
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, train
from unittest import mock
with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "1"}):
    train.main()
PY
