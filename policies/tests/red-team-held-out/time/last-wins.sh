#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=01:00:00
#SBATCH -t99:00:00
python train.py
