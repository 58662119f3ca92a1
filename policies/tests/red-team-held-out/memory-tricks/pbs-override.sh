#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --mem=16G
#PBS -l mem=200gb
python train.py
