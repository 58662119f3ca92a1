#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

n=0
while [ $n -lt 3 ] && ! python train.py; do
  n=$((n + 1))
done
