#!/bin/bash
#SBATCH --job-name=tmux-shell
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tmux new-session -d -s hold 'bash -i'
while tmux has-session -t hold; do sleep 60; done
