#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

name=$(head -1 names.txt)
export "$name=0"
python t.py
