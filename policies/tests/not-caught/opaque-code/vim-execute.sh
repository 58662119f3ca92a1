#!/bin/bash
#SBATCH --job-name=vim-execute
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
vim -es -c 'execute "!" . getline(1)' -c 'qa!' commands.txt
