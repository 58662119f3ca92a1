#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python train.py || echo "train.py failed with $?"
python eval.py || true
