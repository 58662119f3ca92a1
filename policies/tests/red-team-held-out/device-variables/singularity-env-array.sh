#!/bin/bash
#SBATCH --job-name=singularity-env-array
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
flags=(--nv --cleanenv)
flags+=(--env "OMP_NUM_THREADS=4,CUDA_VISIBLE_DEVICES=2")
singularity exec "${flags[@]}" images/torch.sif python train.py
