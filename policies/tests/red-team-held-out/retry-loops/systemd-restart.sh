#!/bin/bash
#SBATCH --job-name=systemd-restart
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
systemd-run --user --wait -p Restart=on-failure -p RestartSec=30 python "$PWD/train.py"
