#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

if [ -z "${CUDA_VISIBLE_DEVICES:-}" ]; then
  echo "CUDA_VISIBLE_DEVICES is not set, no GPU here" >&2
  exit 1
fi
IFS=',' read -ra GPUS <<< "$CUDA_VISIBLE_DEVICES"
NGPU=${#GPUS[@]}
printf 'CUDA_VISIBLE_DEVICES=%s (%d)\n' "$CUDA_VISIBLE_DEVICES" "$NGPU"
torchrun --nproc_per_node=$NGPU train.py
