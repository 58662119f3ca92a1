#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

v=cuda_visible_devices
export "${v^^}=0"
python t.py
