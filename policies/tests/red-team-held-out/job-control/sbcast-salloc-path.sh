#!/bin/bash
#SBATCH --job-name=sbcast-salloc-path
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
time nice -n 5 /opt/slurm/bin/salloc -n 64 ./big.sh
