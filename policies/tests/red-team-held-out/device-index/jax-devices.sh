#!/bin/bash
#SBATCH --job-name=jax-devices
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import jax, train
with jax.default_device(jax.devices("gpu")[2]):
    train.main()
PY
