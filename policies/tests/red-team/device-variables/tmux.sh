#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

tmux new-session -d -s w "CUDA_VISIBLE_DEVICES=1 python t.py"
sleep 3600
