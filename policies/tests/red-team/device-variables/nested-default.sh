#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

export CUDA_VISIBLE_DEVICES=${MY_GPU:-${FALLBACK:-0}}
python t.py
