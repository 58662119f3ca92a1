#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

if python train.py --config c.yaml; then
  python eval.py --config c.yaml
else
  echo "training failed" >&2
  tail -n 100 train.log
  exit 1
fi
