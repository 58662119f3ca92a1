#!/bin/bash
#SBATCH --ntasks=1 --mem=4G
#SBATCH hetjob
#SBATCH --ntasks=8 --mem=64G
srun ./a : ./b
