#!/bin/bash
#SBATCH --core-spec=0
#SBATCH --mem=4G
./a
