#!/bin/bash
#SBATCH --job-name=until-work
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
until python train.py --resume; do sleep 60; done
