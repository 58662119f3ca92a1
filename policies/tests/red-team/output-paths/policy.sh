#!/bin/bash
#SBATCH --output=policies/default.yaml
#SBATCH --mem=4G
./a
