#!/bin/bash
#SBATCH --job-name=command-line-device
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
srun python -m trainer.run --config base.yaml --device cuda:1
