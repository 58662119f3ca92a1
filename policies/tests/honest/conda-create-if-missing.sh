#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

if ! conda env list | grep -q "^ml "; then
  conda env create -f environment.yml
fi
conda run -n ml --no-capture-output python train.py
