#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

printf '%s\0' a.sh b.sh | xargs -0 -n1 sbatch
