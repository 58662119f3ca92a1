#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

[ $SLURM_ARRAY_TASK_ID -eq 1 ] && sbatch collect.sh
