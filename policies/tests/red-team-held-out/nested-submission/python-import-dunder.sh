#!/bin/bash
#SBATCH --job-name=python-import-dunder
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 -c '__import__("subprocess").Popen("sbatch big.sh".split()).wait()'
