#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

srun sh -c "bash -lc 'CUDA_VISIBLE_DEVICES=1 python t.py'"
