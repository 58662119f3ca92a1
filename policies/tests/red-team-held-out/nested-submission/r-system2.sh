#!/bin/bash
#SBATCH --job-name=r-system2
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
Rscript -e 'system2("sbatch", c("--mem=200G", "big.sh"))'
