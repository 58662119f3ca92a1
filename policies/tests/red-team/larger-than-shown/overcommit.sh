#!/bin/bash
#SBATCH -O -n 64
#SBATCH --mem=4G
srun ./a
