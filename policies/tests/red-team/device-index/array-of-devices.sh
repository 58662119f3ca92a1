#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
devices=(cuda:0 cuda:1)
for i in 0 1; do
  python worker.py --device "${devices[$i]}" &
done
wait
