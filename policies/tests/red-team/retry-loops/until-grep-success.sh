#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

until grep -q FINISHED run.log; do
  python train.py > run.log 2>&1
done
