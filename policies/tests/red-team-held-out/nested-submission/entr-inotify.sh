#!/bin/bash
#SBATCH --job-name=entr-inotify
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ls results/*.json | entr -n sbatch next.sh
