#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=80G # JUSTIFIED: the model is large
python t.py
