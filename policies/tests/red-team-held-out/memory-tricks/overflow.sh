#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem=18014398509481984G
#SBATCH --time=02:00:00
python train.py
