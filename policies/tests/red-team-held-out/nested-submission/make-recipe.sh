#!/bin/bash
#SBATCH --job-name=make-recipe
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf 'all:\n\t@sbatch big.sh\n' > jobs.mk
make -f jobs.mk
