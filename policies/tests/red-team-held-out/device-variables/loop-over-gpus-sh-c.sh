#!/bin/bash
#SBATCH --job-name=loop-over-gpus-sh-c
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for gpu in 0 1; do
  sh -c 'CUDA_VISIBLE_DEVICES=$1 exec python train.py' launcher "$gpu" &
done
wait
