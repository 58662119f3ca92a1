#!/bin/bash
#SBATCH --job-name=bash-env-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
echo 'export CUDA_VISIBLE_DEVICES=1' > setup.rc
export BASH_ENV=$PWD/setup.rc
bash -c 'python train.py'
