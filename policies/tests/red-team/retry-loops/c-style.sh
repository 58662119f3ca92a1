#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
for ((i = 0; i < 5; i++)); do
  srun python train.py && break
  echo "attempt $i failed"
done
