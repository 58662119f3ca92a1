#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G -t7200
python train.py
