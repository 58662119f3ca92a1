#!/bin/bash
#SBATCH --job-name=taskset-wrapper
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
taskset -c 0-7 nice -n 5 stdbuf -oL time -p env CUDA_VISIBLE_DEVICES=1 python train.py
