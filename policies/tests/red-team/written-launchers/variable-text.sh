#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
BODY='export CUDA_VISIBLE_DEVICES=0
python t.py'
echo "$BODY" > body.sh
bash body.sh
