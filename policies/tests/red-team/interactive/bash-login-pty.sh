#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

exec srun --ntasks=1 --pty $SHELL -l
