#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

while [ ! -f shared/ready.flag ]; do
  sleep 30
done
python consume.py shared/data.bin
