#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

eval "$(ssh-agent -s)"
ssh-add ~/.ssh/deploy_key
git pull --ff-only
git submodule update --init
python train.py
