#!/bin/bash
#SBATCH --job-name=parallel-function
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
parallel -j8 sbatch --gpus=1 {} ::: jobs/*.sh
