#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for try in {1..10}; do
  python train.py || continue
  break
done
