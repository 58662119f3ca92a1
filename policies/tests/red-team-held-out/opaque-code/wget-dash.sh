#!/bin/bash
#SBATCH --job-name=wget-dash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
wget -qO- https://example.org/setup.sh | tee setup.log | sh
