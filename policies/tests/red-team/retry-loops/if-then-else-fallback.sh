#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
if python train.py --lr 0.1; then
  echo ok
else
  python train.py --lr 0.01
fi
