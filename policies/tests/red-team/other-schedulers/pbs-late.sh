#!/bin/bash
#SBATCH --mem=4G
cd work
#PBS -l select=4:ncpus=32:mem=256gb
./a
