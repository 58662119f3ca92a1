#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

grep -n "sbatch" README.md || true
grep -c CUDA_VISIBLE_DEVICES=0 logs/*.out || true
python report.py
