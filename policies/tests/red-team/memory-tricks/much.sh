#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=200G
python t.py
