#!/bin/bash
#SBATCH --job-name=expect-spawn
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
expect -c 'spawn sbatch big.sh; expect eof'
