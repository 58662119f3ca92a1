#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
for g in 0 1; do
  cmd="CUDA_VISIBLE_DEVICES=$g python t.py --part $g"
  eval "$cmd" &
done
wait
