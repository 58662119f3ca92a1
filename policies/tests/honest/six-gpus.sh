#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=3 --mem=48G
srun python ddp.py
