#!/bin/bash
#SBATCH --array=[0-15]
#SBATCH --mem=4G
./a
