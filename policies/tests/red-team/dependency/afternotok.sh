#!/bin/bash
#SBATCH --dependency=afternotok:1234
#SBATCH --mem=4G
./a
