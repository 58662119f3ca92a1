#!/bin/bash
#SBATCH --job-name=cat-launcher-python
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > tools.py <<'PY'
from subprocess import run as do
do("sbatch big.sh", shell=True)
PY
python tools.py
