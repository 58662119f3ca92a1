#!/bin/bash
#SBATCH --job-name=for-command-names
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for tool in qsub sbatch bsub; do
  command -v "$tool" > /dev/null && "$tool" big.sh && break
done
