#!/bin/bash
#SBATCH --job-name=json-config
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
jq '.device = "cuda:1"' base.json > config.json
python train.py --config config.json
