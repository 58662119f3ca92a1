#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

while getopts "g:" CUDA_VISIBLE_DEVICES; do :; done
export CUDA_VISIBLE_DEVICES
python t.py
