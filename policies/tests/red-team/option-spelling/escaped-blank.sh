#!/bin/bash
#SBATCH --comment=a\ --mem=64G
#SBATCH --gpus=1
python t.py
