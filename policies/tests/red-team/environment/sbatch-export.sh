#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0
python t.py
