#!/bin/bash
#SBATCH --mem=4G
#SBATCH -t2-0
./a
