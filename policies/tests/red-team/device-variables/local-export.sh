#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

run() { local -x CUDA_VISIBLE_DEVICES=$1; python t.py; }
run 0 & run 1 & wait
