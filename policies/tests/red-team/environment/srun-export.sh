#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

srun --export=ALL,CUDA_VISIBLE_DEVICES=1 python t.py
