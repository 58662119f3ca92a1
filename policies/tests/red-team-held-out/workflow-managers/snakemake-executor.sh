#!/bin/bash
#SBATCH --job-name=snakemake-executor
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
snakemake -j50 --executor slurm --default-resources slurm_partition=gpu
