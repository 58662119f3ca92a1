#!/bin/bash
#SBATCH --chdir=/etc
#SBATCH --output=x.out
#SBATCH --mem=4G
./a
