#!/bin/bash
#SBATCH --job-name=background-restart
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
(
  while sleep 30; do
    kill -0 "$(cat work.pid)" 2>/dev/null || { python train.py --resume & echo $! > work.pid; }
  done
) &
python train.py & echo $! > work.pid
wait
