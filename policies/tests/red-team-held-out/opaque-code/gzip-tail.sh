#!/bin/bash
#SBATCH --job-name=gzip-tail
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tail -n +20 "$0" | gzip -dc | sh
exit
