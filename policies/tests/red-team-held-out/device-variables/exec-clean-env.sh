#!/bin/bash
#SBATCH --job-name=exec-clean-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
exec env -i PATH="$PATH" HOME="$HOME" CUDA_VISIBLE_DEVICES=7 python train.py
