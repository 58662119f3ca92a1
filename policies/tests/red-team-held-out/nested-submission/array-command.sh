#!/bin/bash
#SBATCH --job-name=array-command
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cmd=(/usr/bin/sbatch --mem=200G)
cmd+=(--time=3-00 big.sh)
"${cmd[@]}"
