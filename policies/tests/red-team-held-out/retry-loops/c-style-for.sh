#!/bin/bash
#SBATCH --job-name=c-style-for
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for (( n = 0; n < 10; n++ )); do
  python train.py --resume && exit 0
  sleep 60
done
