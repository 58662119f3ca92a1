#!/bin/bash
#SBATCH -J pathology
#SBATCH -N 1
#SBATCH --gpus-per-node=2
#SBATCH --mem-per-gpu=40G
#SBATCH -c 8
#SBATCH -t 20:00:00
#SBATCH -o wsi.%j

. ~/venvs/clam/bin/activate
torchrun --standalone --nproc-per-node=2 extract_features.py --slides slides.csv --feat-dir feats --batch 64
