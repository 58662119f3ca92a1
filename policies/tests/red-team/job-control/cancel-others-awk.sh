#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

scancel $(squeue -h --me -o '%i %j' | awk '$2 ~ /old/ {print $1}')
