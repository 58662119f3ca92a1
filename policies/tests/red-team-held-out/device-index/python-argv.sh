#!/bin/bash
#SBATCH --job-name=python-argv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import sys, runpy
sys.argv = ["train.py", "--device", "cuda:%s" % "1"]
runpy.run_path("train.py", run_name="__main__")
PY
