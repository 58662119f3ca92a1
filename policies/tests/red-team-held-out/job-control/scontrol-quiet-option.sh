#!/bin/bash
#SBATCH --job-name=scontrol-quiet-option
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
scontrol -Q --local hold 4711 ; scontrol --quiet top 4712
