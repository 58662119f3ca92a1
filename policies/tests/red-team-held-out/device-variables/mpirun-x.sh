#!/bin/bash
#SBATCH --job-name=mpirun-x
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mpirun -np 1 -x OMP_NUM_THREADS=4 -x CUDA_VISIBLE_DEVICES=1 python train.py
