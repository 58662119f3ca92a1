#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --mem-per-cpu=8G
python t.py
