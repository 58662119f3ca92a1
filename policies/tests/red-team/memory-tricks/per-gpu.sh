#!/bin/bash
#SBATCH --gpus=2
#SBATCH --mem-per-gpu=60000
python t.py
