#!/bin/bash
#SBATCH --job-name=mapfile-export
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
printf 'CUDA_VISIBLE_DEVICES=1\n' > run.txt
mapfile -t lines < run.txt
export "${lines[@]}"
python train.py
