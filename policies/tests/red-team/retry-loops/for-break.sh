#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for attempt in 1 2 3; do
  if python train.py; then
    break
  fi
done
