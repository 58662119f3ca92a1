#!/bin/bash
#SBATCH --job-name=awk-getline
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
awk 'BEGIN { while (("sbatch big.sh" | getline line) > 0) print line }'
