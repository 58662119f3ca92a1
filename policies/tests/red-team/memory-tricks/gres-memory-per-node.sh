#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=1
#SBATCH --mem=96G
srun python t.py
