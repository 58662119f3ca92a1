#!/bin/bash
#SBATCH --cpu-bind=cores
#SBATCH --mem=4G
./a
