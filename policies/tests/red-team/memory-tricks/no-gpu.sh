#!/bin/bash
#SBATCH --mem=512G
#SBATCH --ntasks=1
./assemble
