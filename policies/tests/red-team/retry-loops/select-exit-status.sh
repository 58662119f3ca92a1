#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

for k in 1 2 3 4; do
  python train.py 2>&1 | tee log.$k
  [ ${PIPESTATUS[0]} -eq 0 ] && break
done
