#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
N=${1:-5}
python train.py
if [ "$N" -gt 0 ]; then sbatch chain-counter.sh $((N - 1)); fi
