#!/bin/bash
#SBATCH --job-name=git-ssh-command
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
GIT_SSH_COMMAND='sbatch big.sh #' git ls-remote ssh://host/repository
