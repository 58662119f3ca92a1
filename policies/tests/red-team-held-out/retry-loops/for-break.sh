#!/bin/bash
#SBATCH --job-name=for-break
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for attempt in {1..20}; do
  if python train.py; then break; fi
  echo "attempt $attempt failed"
done
