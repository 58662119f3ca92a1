#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

LR_cifar=0.1
LR_svhn=0.01
for d in cifar svhn; do
  v=LR_$d
  python train.py --data $d --lr ${!v}
done
