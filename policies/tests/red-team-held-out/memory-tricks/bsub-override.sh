#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --mem=16G
set -e
#BSUB -M 200000000
python train.py
