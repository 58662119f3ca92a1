#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for port in 29500 29501 29502; do
  torchrun --master_port $port train.py && exit 0
done
exit 1
