#!/bin/bash
#SBATCH --gpus=1
#SBATCH--mem=100G
python t.py
