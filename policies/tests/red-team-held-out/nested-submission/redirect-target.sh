#!/bin/bash
#SBATCH --job-name=redirect-target
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
echo done > "log-$(sbatch --parsable big.sh).txt"
