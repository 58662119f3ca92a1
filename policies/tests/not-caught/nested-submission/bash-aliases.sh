#!/bin/bash
#SBATCH --job-name=bash-aliases
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
shopt -s expand_aliases
BASH_ALIASES[go]='sbatch big.sh'
eval go
