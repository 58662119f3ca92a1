#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
declare -A LR=([small]=1e-3 [base]=3e-4 [large]=1e-4)
for size in small base large; do
  python train.py --size $size --lr ${LR[$size]}
done
