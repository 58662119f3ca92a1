#!/bin/bash
#SBATCH --mem=4G
#SBATCH --time=0
./a
