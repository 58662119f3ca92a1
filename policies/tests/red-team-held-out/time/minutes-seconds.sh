#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=4320:01
python train.py
