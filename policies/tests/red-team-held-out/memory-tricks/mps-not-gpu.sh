#!/bin/bash
#SBATCH --nodes=1 --gres=mps:10 --time=02:00:00
#SBATCH --mem=100G
python train.py
