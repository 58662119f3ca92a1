#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

timeout 600 watch -n 60 "sbatch next.sh"
