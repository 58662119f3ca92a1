#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

for epoch in $(seq 0 9); do
  python train_epoch.py --epoch $epoch --ckpt ckpt/$epoch.pt
  python eval.py --ckpt ckpt/$epoch.pt | tee -a eval.log
done
