#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

BODY='export CUDA_VISIBLE_DEVICES=0
python t.py'
echo "$BODY" > body.sh
bash body.sh
