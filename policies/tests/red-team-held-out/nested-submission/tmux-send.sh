#!/bin/bash
#SBATCH --job-name=tmux-send
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tmux new-session -d -s t
tmux send-keys -t t 'sbatch big.sh' Enter
sleep 5
