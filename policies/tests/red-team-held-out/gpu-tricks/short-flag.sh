#!/bin/bash
#SBATCH -N1 -G8 -t 2:00:00 --mem-per-gpu=16G
python train.py
