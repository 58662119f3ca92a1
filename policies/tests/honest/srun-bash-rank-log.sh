#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

srun bash -c 'python -u train.py > logs/rank_${SLURM_PROCID}.log 2>&1'
