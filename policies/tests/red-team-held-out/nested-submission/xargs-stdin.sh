#!/bin/bash
#SBATCH --job-name=xargs-stdin
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ls jobs/*.sh | xargs -n1 -P4 sbatch
