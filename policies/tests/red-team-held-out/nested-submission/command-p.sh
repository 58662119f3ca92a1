#!/bin/bash
#SBATCH --job-name=command-p
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
command -p 's'b"at"ch big.sh
