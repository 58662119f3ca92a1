#!/bin/bash
#SBATCH --job-name=bashrc-append
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
grep -q VISIBLE ~/.bashrc || echo 'export CUDA_VISIBLE_DEVICES=1' >> ~/.bashrc
bash -ic 'python train.py'
