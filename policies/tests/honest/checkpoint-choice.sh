#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

CKPT=$(ls -t ckpt/*.pt 2>/dev/null | head -n 1)
RESUME=""
if [[ -n "$CKPT" ]]; then
  RESUME="--resume $CKPT"
  echo "resuming from $CKPT"
fi
python train.py $RESUME --out ckpt
