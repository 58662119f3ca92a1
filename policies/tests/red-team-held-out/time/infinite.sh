#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G -t 60
#SBATCH --time infinite
python train.py
