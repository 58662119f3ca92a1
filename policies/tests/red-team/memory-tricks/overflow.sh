#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=18014398509481984G
python t.py
