#!/bin/bash
#SBATCH --job-name=scontrol-release
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
for id in $(squeue -h -u "$USER" -t PD -o %A); do scontrol release "$id"; done
