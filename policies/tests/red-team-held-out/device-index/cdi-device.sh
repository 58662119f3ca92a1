#!/bin/bash
#SBATCH --job-name=cdi-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
podman run --rm --device nvidia.com/gpu=2 pytorch python train.py
