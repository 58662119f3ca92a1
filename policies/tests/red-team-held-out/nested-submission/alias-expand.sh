#!/bin/bash
#SBATCH --job-name=alias-expand
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
shopt -s expand_aliases
alias go='sbatch --gpus=8'
go big.sh
