#!/bin/bash
#SBATCH --dependency=whenever:12
#SBATCH --mem=4G
./a
