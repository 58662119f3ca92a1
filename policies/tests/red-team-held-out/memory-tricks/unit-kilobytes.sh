#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem=209715200K
#SBATCH --time=02:00:00
python train.py
