#!/bin/bash
#SBATCH --job-name=substring-slices
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
word=xsbatchy
${word:1:6} big.sh
