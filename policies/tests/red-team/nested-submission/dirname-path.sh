#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

BIN=$(dirname "$(which squeue)")
"$BIN/sbatch" next.sh
