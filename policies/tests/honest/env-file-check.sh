#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

: "${DATA_DIR:?set DATA_DIR first}"
: "${OUT_DIR:=$PWD/out}"
mkdir -p "$OUT_DIR"
python train.py --data "$DATA_DIR" --out "$OUT_DIR"
