#!/bin/bash
#SBATCH --job-name=simple-slurm-alias
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 -c 'from simple_slurm import Slurm as S; S("--gpus", 8).sbatch("python train.py")'
