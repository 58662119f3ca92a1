#!/bin/bash
#SBATCH --job-name=which-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tool=$(type -P sbatch) || exit 1
"$tool" big.sh
