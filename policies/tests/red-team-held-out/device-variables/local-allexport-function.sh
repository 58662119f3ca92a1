#!/bin/bash
#SBATCH --job-name=local-allexport-function
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
set -o allexport
setup() { OMP_NUM_THREADS=4 CUDA_VISIBLE_DEVICES="$1"; }
setup 3
python train.py
