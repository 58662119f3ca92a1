#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for seed in 1 2 3 4 5; do
  for lr in 1e-3 3e-4; do
    python train.py --seed $seed --lr $lr > logs/s${seed}_lr${lr}.log 2>&1
  done
done
