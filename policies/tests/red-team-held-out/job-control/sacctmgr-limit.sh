#!/bin/bash
#SBATCH --job-name=sacctmgr-limit
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
sacctmgr -i modify user "$USER" set MaxJobs=100
