#!/bin/bash
#SBATCH --gpus=1
#SBATCH --cpus-per-gpu=16
#SBATCH --mem-per-cpu=4G
python t.py
