#!/bin/bash
#SBATCH --job-name=brace-expansion
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
{sbatch,--mem=200G,big.sh}
