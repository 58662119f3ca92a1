#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -c "import jax; print(jax.devices()[0].device_kind, jax.device_count())"
python train_jax.py
