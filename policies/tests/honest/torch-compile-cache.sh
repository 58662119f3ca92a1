#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

export TORCHINDUCTOR_CACHE_DIR=$TMPDIR/inductor TRITON_CACHE_DIR=$TMPDIR/triton
python bench.py --compile
