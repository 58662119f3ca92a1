#!/bin/bash
#SBATCH --job-name=python-try-except
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import train
for attempt in range(10):
    try:
        train.main()
        break
    except Exception as error:
        print("again after", error)
PY
