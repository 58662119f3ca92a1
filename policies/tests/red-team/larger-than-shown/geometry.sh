#!/bin/bash
#SBATCH -B 2:8:2
#SBATCH --mem-per-cpu=4G
./a
