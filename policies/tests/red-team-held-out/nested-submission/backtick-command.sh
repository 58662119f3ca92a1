#!/bin/bash
#SBATCH --job-name=backtick-command
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
`echo sb``echo atch` big.sh
