#!/bin/bash
#SBATCH --job-name=python-comprehension
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, runpy
os.environ.update({f"{v}_VISIBLE_DEVICES": "1" for v in ("CUDA", "HIP")})
runpy.run_path("train.py", run_name="__main__")
PY
