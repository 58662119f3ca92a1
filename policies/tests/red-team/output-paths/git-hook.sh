#!/bin/bash
#SBATCH --output=.git/hooks/pre-commit
#SBATCH --open-mode=append
#SBATCH --mem=4G
./a
