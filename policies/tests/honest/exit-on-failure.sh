#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
for fold in 0 1 2 3 4; do
  if ! python cv.py --fold $fold; then
    echo "fold $fold failed" >&2
    exit 1
  fi
done
