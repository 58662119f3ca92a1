#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

set -x
ulimit -s unlimited
ulimit -c 0
env | grep -E '^(SLURM|CUDA|OMP)' | sort
srun ./wrf.exe
