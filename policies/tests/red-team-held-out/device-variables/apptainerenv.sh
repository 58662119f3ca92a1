#!/bin/bash
#SBATCH --job-name=apptainerenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export APPTAINERENV_CUDA_VISIBLE_DEVICES=1
apptainer exec --nv images/torch.sif python train.py
