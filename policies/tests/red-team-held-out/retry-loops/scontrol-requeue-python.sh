#!/bin/bash
#SBATCH --job-name=scontrol-requeue-python
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import os, signal, subprocess, train
signal.signal(signal.SIGUSR1, lambda *_: subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]]))
train.main()
PY
