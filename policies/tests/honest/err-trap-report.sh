#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

set -eE
trap 'echo "error in line $LINENO: $BASH_COMMAND" >&2' ERR
python a.py
python b.py
