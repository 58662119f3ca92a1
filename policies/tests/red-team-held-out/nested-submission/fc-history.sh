#!/bin/bash
#SBATCH --job-name=fc-history
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
set -o history
history -s 'sbatch big.sh'
fc -s sbatch
