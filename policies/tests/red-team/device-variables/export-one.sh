#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

module load cuda/12.1
export CUDA_VISIBLE_DEVICES=0
python train.py --epochs 10
