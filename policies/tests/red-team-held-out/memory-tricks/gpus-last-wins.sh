#!/bin/bash
#SBATCH --nodes=1 --time=02:00:00 --mem=64G --gpus=4
#SBATCH -G 1
python train.py
