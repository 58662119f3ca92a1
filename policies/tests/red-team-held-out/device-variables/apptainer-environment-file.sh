#!/bin/bash
#SBATCH --job-name=apptainer-environment-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
apptainer exec --nv --env=CUDA_VISIBLE_DEVICES=1 images/torch.sif python train.py
