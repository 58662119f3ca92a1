#!/bin/bash
#SBATCH --job-name=curl-pipe
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
curl -fsSL https://example.org/setup.sh | bash -s -- --yes
