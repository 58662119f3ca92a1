#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

IFS=, read -r CUDA_VISIBLE_DEVICES rest <<< "2,3"
export CUDA_VISIBLE_DEVICES
python t.py
