#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
LR=$(jq -r .lr conf.json)
OUT=$(yq '.out' conf.yaml)
mkdir -p "$OUT"
python train.py --lr "$LR" --out "$OUT"
