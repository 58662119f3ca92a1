#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

while true; do
  python train.py --resume && break
  sleep 60
done
