#!/bin/bash
#SBATCH --gpus=1 --mem=16G --signal=SIGUSR1@120
srun python l.py
