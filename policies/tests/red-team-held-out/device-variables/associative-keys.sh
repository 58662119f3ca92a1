#!/bin/bash
#SBATCH --job-name=associative-keys
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
declare -A settings=([OMP_NUM_THREADS]=8 [CUDA_VISIBLE_DEVICES]=0,1)
for key in "${!settings[@]}"; do
  export "$key=${settings[$key]}"
done
python train.py
