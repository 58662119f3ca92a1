#!/bin/bash
#SBATCH --job-name=find-exec-sh
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
find jobs -name '*.sh' -exec sh -c 'for f; do sbatch "$f"; done' _ {} +
