#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus=3
#SBATCH --mem=48G
python t.py
