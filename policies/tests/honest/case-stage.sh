#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

stage=${1:-all}
case $stage in
  prep) python prep.py ;;
  train) python train.py ;;
  eval) python eval.py ;;
  all) python prep.py && python train.py && python eval.py ;;
  *) echo "stage?"; exit 2 ;;
esac
