#!/bin/bash
#SBATCH --job-name=command-not-found
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
command_not_found_handle() { sbatch next.sh; }
no-such-program
