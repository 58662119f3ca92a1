#!/bin/bash
#SBATCH --job-name=return-trap
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
load() { trap 'sbatch next.sh' RETURN; source env/bin/activate; }
load
