#!/bin/bash
#SBATCH --job-name=python-tenacity
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import tenacity, train
tenacity.retry(stop=tenacity.stop_after_attempt(10))(train.main)()
PY
