#!/bin/bash
#SBATCH --job-name=too-big
#SBATCH --partition=cpu
#SBATCH --cpus-per-task=1
#SBATCH --mem=300M
#SBATCH --time=5
#SBATCH --output=logs/slurm/%x-%j.out
python3 load.py
