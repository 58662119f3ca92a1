#!/bin/bash
#SBATCH --gpus=5
#SBATCH --nodes=1
#SBATCH --mem-per-gpu=8G
python t.py
