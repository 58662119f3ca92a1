#!/bin/bash
#SBATCH --job-name=ordinal-typeset
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
typeset -rx GPU_DEVICE_ORDINAL='2'
./bin/simulate --steps 1000
