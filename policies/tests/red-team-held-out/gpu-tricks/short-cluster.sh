#!/bin/bash
#SBATCH -N2 -t 2:00:00 --mem-per-gpu=16G -QG16
srun python train.py
