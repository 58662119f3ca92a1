#!/bin/bash
#SBATCH --job-name=papermill-parameter
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
papermill train.ipynb out.ipynb -p device cuda:1 -p epochs 10
