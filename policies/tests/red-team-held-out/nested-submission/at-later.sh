#!/bin/bash
#SBATCH --job-name=at-later
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
echo 'sbatch /home/ada/project/big.sh' | at now + 2 hours
