#!/bin/bash
#SBATCH --mincpus=32
#SBATCH --mem-per-cpu=2G
./a
