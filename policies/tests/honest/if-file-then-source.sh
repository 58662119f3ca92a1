#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

if [ -r "$HOME/.cluster_env" ]; then . "$HOME/.cluster_env"; fi
[ -f setup.sh ] && source setup.sh
python a.py
