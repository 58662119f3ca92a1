#!/bin/bash
#SBATCH --job-name=first
#SBATCH --partition=cpu
#SBATCH --cpus-per-task=1
#SBATCH --mem=200M
#SBATCH --time=00:05:00
#SBATCH --output=logs/slurm/%x-%j.out
python3 train.py "$@"
