#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --mem=64G#--mem=16G
python train.py
