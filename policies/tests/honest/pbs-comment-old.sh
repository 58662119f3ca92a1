#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

# was: ##PBS -l nodes=1
# qsub run.pbs is what we used before
./a.out
