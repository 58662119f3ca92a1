#!/bin/bash
#SBATCH --job-name=mutual-functions
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
first() { python train.py || second; }
second() { sleep 60; first; }
first
