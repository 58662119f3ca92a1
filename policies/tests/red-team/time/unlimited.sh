#!/bin/bash
#SBATCH --mem=4G
#SBATCH -t UNLIMITED
./a
