#!/bin/bash
#SBATCH --mem=4G
#SBATCH --error=.env.local
./a
