#!/bin/bash
#SBATCH --job-name=python-shlex-list
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import subprocess as sp
options = {"mem": "200G", "gpus": 8}
sp.check_call(["sbatch", *[f"--{k}={v}" for k, v in options.items()], "big.sh"])
PY
