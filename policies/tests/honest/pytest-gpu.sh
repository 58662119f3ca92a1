#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -m pytest -x -q tests/gpu -k "not slow"
