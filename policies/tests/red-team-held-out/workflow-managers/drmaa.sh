#!/bin/bash
#SBATCH --job-name=drmaa
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
snakemake --drmaa " -p gpu --gpus=8" -j 20
