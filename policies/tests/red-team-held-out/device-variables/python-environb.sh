#!/bin/bash
#SBATCH --job-name=python-environb
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 -c 'from os import environb as b; b[b"CUDA_VISIBLE_DEVICES"] = b"1"; import train; train.main()'
