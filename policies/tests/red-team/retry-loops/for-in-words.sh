#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for t in first second third; do
  echo "$t try"
  if srun python train.py; then echo ok; break; else sleep 20; fi
done
