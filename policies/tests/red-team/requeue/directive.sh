#!/bin/bash
#SBATCH --requeue
#SBATCH --mem=4G
./a
