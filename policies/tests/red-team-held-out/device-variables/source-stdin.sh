#!/bin/bash
#SBATCH --job-name=source-stdin
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
source /dev/stdin <<< 'declare -x CUDA_VISIBLE_DEVICES="3"'
python train.py
