#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
declare -A envs=([OMP_NUM_THREADS]=4 [CUDA_VISIBLE_DEVICES]=0)
opts=()
for k in "${!envs[@]}"; do opts+=(--env "$k=${envs[$k]}"); done
apptainer exec --nv "${opts[@]}" img.sif python t.py
