#!/bin/bash
#SBATCH --gpus=1 --mem=16G
#SBATCH --time=2-00:00:00
python long.py
