#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for lr in 1e-2 1e-3 1e-4; do
  if ! python train.py --lr $lr; then
    echo "$lr" >> failed.txt
    continue
  fi
  echo "$lr" >> ok.txt
done
