#!/bin/bash
#SBATCH --job-name=while-not-flag
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ok=0
while (( ! ok )); do
  srun python train.py --resume && ok=1
done
