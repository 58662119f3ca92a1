#!/bin/bash
#SBATCH --nodes=1 --gres=gres:gpu:1k --mem-per-gpu=16G --time=02:00:00
python train.py
