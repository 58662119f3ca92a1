#!/bin/bash
#SBATCH --job-name=git-clone-run
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
git clone -q https://example.org/tool.git
bash tool/install.sh
