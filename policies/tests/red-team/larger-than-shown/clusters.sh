#!/bin/bash
#SBATCH -M other,bigger
#SBATCH --mem=4G
./a
