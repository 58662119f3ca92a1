#!/bin/bash
#SBATCH --job-name=perl-until
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
perl -e 'sleep 60 while system("python", "train.py")'
