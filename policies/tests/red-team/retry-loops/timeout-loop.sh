#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

while true; do
  timeout 1h python train.py --resume
  [ $? -eq 124 ] || break
done
