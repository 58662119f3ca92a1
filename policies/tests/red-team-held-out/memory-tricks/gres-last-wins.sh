#!/bin/bash
#SBATCH --nodes=1 --time=02:00:00 --mem=64G
#SBATCH --gres=gpu:4
#SBATCH --gres=gpu:0
python prepare.py
