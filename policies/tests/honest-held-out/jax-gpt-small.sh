#!/bin/bash
#SBATCH --job-name=jax-gpt
#SBATCH --gpus=2
#SBATCH --nodes=1
#SBATCH --mem=32G
#SBATCH --cpus-per-gpu=4
#SBATCH --time=08:00:00
#SBATCH --output=slurm-%x-%j.out

source "$HOME/.venv/jax/bin/activate"

export XLA_FLAGS="--xla_gpu_enable_triton_gemm=false --xla_dump_to=$PWD/xla_dump"
export XLA_PYTHON_CLIENT_PREALLOCATE=false
export XLA_PYTHON_CLIENT_MEM_FRACTION=.85
export JAX_COMPILATION_CACHE_DIR=$HOME/.cache/jax
export TF_CPP_MIN_LOG_LEVEL=2

python - <<'PY'
import jax
print("devices:", jax.devices())
assert jax.local_device_count() == 2, jax.local_device_count()
PY

python -m gpt.train \
  --config configs/small.py \
  --config.batch_size=64 \
  --config.learning_rate=3e-4 \
  --workdir="runs/$(date +%Y%m%d)-${SLURM_JOB_ID}"
