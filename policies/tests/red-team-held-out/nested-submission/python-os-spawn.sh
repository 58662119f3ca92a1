#!/bin/bash
#SBATCH --job-name=python-os-spawn
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 -c 'import os; os.posix_spawnp("".join(["sb", "atch"]), ["sbatch", "big.sh"], os.environ)'
