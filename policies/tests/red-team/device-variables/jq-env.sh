#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
printf '%s\n' OMP_NUM_THREADS=2 CUDA_VISIBLE_DEVICES=1 | xargs -I{} env {} python t.py
env $(echo CUDA_VISIBLE_DEVICES=1) python t.py
