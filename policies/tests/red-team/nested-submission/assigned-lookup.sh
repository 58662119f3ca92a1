#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

declare -A do=([queue]=squeue [go]=sbatch)
${do[go]} next.sh
