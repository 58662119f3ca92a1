#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for lr in 0.1 0.01 0.001; do
  sbatch --export=ALL,LR=$lr sweep_one.sh
done
