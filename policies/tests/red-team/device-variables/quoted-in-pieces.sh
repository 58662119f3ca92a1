#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

export "CUDA_"VISIBLE'_DEV'ICES=0
python t.py
