#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

DEV="cuda:1"
python train.py --device "$DEV"
