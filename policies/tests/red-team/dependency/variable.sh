#!/bin/bash
#SBATCH --dependency=afterok:$PREV
#SBATCH --mem=4G
./a
