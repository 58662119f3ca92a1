#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

(
  flock -x 200
  [ -d /tmp/data ] || tar -xf data.tar -C /tmp
) 200>/tmp/unpack.lock
python train.py --data /tmp/data
