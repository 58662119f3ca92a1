#!/bin/bash
#SBATCH --nodefile=nodes.txt
#SBATCH --mem=4G
./a
