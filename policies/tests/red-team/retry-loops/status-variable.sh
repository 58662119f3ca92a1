#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

rc=1
while [[ $rc -ne 0 ]]; do
  python train.py
  rc=$?
done
