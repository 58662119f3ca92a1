#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

podman run --rm --device nvidia.com/gpu=1 img python t.py
