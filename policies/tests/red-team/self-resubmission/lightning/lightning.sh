#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --signal=SIGUSR1@90
srun python lit.py
