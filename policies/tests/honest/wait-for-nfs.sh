#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for i in $(seq 30); do
  ls shared/ready && break
  sleep 2
done
srun python train.py
