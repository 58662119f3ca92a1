#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

env -i PATH=$PATH HOME=$HOME srun -p gpu -n 8 ./a.out
