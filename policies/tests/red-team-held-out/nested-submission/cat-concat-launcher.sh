#!/bin/bash
#SBATCH --job-name=cat-concat-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf 'sba' > a.part
printf 'tch big.sh\n' > b.part
cat a.part b.part > step.sh
bash step.sh
