#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
if command -v nvidia-smi > /dev/null 2>&1; then nvidia-smi; fi
PY=$(command -v python3.11 || command -v python3)
"$PY" train.py
