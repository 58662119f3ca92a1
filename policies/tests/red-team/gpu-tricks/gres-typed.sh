#!/bin/bash
#SBATCH -N 3
#SBATCH --gres=gpu:a100:4
#SBATCH --mem=40G
srun python t.py
