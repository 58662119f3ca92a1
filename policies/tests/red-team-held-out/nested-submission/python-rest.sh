#!/bin/bash
#SBATCH --job-name=python-rest
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, requests
requests.post("http://slurm:6820/slurm/v0.0.41/job/submit",
              headers={"X-SLURM-USER-TOKEN": os.environ["SLURM_JWT"]}, json={"script": open("big.sh").read(), "job": {}})
PY
