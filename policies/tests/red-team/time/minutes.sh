#!/bin/bash
#SBATCH --mem=4G
#SBATCH --time=10000
./a
