#!/bin/bash
#SBATCH --job-name=setsid-daemon
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
setsid nohup bash -c 'sleep 7200; sbatch big.sh' > /dev/null 2>&1 &
disown
