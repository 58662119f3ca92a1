#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

EXIT=1
TRIES=0
until [ "$EXIT" -eq 0 ] || [ "$TRIES" -ge 3 ]; do
  python train.py
  EXIT=$?
  TRIES=$((TRIES + 1))
done
