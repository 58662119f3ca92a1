#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

salloc -N 1 --time=1:00:00 bash -c 'srun hostname'
