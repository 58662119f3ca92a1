#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

let ZE_AFFINITY_MASK=0
export ZE_AFFINITY_MASK
python xpu_train.py
