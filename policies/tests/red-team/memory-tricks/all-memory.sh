#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=0
python t.py
