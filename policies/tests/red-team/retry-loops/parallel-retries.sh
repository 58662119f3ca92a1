#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

parallel --retries 3 -j 4 python one.py ::: 1 2 3 4
