#!/bin/bash
#SBATCH --job-name=for-loop-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for CUDA_VISIBLE_DEVICES in 0 1 2 3; do
  export CUDA_VISIBLE_DEVICES
  python train.py --fold "$CUDA_VISIBLE_DEVICES" &
done
wait
