#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

USED=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1)
if [ "$USED" -gt 1000 ]; then
  echo "GPU $CUDA_VISIBLE_DEVICES is in use ($USED MB)" >&2
  nvidia-smi
  exit 75
fi
python train.py
