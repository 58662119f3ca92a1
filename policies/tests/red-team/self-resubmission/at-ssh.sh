#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

ssh $SLURM_SUBMIT_HOST "cd $SLURM_SUBMIT_DIR; sbatch $0"
