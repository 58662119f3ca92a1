#!/bin/bash
#SBATCH --get-user-env=30L
#SBATCH --mem=4G
./run
