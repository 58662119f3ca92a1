#!/bin/bash
#SBATCH --job-name=case-status
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
python train.py
case $? in 0) ;; *) python train.py ;; esac
