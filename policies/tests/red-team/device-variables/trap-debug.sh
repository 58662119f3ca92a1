#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

trap 'CUDA_VISIBLE_DEVICES=0' DEBUG
export CUDA_VISIBLE_DEVICES
python t.py
