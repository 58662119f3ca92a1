#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

if ! conda env list | grep -q "^ml "; then
  conda env create -f environment.yml
fi
conda run -n ml --no-capture-output python train.py
