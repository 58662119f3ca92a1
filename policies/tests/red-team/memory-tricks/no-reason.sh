#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=20G
python t.py
