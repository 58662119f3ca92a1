#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=02:00:00
#SBATCH --export=HOME,PATH,CUDA_VISIBLE_DEVICES=3
python train.py
