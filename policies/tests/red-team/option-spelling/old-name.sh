#!/bin/bash
#SBATCH --gpus=1
#SLURM --mem=100G
python t.py
