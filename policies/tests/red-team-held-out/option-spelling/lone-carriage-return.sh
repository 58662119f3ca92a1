#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --comment=small--mem=90G
python train.py
