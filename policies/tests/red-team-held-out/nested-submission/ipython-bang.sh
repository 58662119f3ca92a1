#!/bin/bash
#SBATCH --job-name=ipython-bang
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ipython -c '!sbatch big.sh'
