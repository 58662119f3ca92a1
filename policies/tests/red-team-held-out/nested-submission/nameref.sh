#!/bin/bash
#SBATCH --job-name=nameref
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
declare -n command=other
other=sbatch
$command next.sh
python train.py
