#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:1 --time=02:00:00
#SBATCH --mem=20G   # JUSTIFIED:
python train.py
