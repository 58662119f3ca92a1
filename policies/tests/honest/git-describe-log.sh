#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

git rev-parse HEAD > commit.txt
git diff --stat >> commit.txt
git status --porcelain | head >> commit.txt
python train.py
