#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

printf -v CUDA_VISIBLE_DEVICES '%d' 1
export CUDA_VISIBLE_DEVICES
python t.py
