#!/bin/bash
#SBATCH --gpus=4 --nodes=1
#SBATCH --mem=1T
python t.py
