#!/bin/bash
#SBATCH --job-name=split-filter
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
split -l 40 --filter='sbatch --gpus=1' all-jobs.txt
