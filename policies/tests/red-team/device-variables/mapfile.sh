#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
mapfile -t -n 1 CUDA_VISIBLE_DEVICES < <(nvidia-smi --query-gpu=index --format=csv,noheader | sort -r)
export CUDA_VISIBLE_DEVICES
python t.py
