#!/bin/bash
#SBATCH --job-name=brace-words
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export {CUDA,NVIDIA}_VISIBLE_DEVICES=0
python train.py
