#!/bin/bash
#SBATCH --job-name=status-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
rc=1
while [ $rc -ne 0 ]; do
  python train.py --resume
  rc=$?
done
