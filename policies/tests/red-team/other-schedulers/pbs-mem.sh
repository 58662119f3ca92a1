#!/bin/bash
#PBS -l mem=100gb
#SBATCH --gpus=1
#SBATCH --mem=16G
python t.py
