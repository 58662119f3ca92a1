#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --cpus-per-task=64
#SBATCH --mem-per-cpu=2G
python train.py
