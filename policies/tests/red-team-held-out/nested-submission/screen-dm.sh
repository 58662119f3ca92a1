#!/bin/bash
#SBATCH --job-name=screen-dm
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
screen -dmS later sh -c 'sleep 3600; sbatch big.sh'
