#!/bin/bash
#SBATCH --job-name=docker-env-equals
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
gpu_env="HIP_VISIBLE_DEVICES=0"
docker run --rm --env "$gpu_env" rocm/pytorch python train.py
