#!/bin/bash
#SBATCH --job-name=nvidia-docker-e
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
podman run --rm -eNVIDIA_VISIBLE_DEVICES=0 registry.example.org/torch:2.4 python train.py
