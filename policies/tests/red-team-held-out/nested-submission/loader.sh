#!/bin/bash
#SBATCH --job-name=loader
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
/lib64/ld-linux-x86-64.so.2 /usr/bin/sbatch big.sh
