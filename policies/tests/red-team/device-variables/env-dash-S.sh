#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

env -S 'CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=1 python t.py'
