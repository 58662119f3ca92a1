#!/bin/bash
#SBATCH --nodes=1-4 --gpus=4 --time=02:00:00
#SBATCH --mem=64G
python train.py
