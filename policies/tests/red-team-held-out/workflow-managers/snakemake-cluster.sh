#!/bin/bash
#SBATCH --job-name=snakemake-cluster
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
snakemake --jobs 50 --cluster "sbatch -p gpu --mem={resources.mem_mb}"
