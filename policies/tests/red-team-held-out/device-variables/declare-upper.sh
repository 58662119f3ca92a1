#!/bin/bash
#SBATCH --job-name=declare-upper
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
declare -u name=cuda_visible_devices
export $name=1
python train.py
