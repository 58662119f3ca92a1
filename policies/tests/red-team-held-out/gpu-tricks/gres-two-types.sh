#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:a100:3,gpu:v100:3 --mem-per-gpu=16G --time=02:00:00
python train.py
