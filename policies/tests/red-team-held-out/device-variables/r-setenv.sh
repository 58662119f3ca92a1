#!/bin/bash
#SBATCH --job-name=r-setenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
Rscript -e 'Sys.setenv(CUDA_VISIBLE_DEVICES = "1"); source("train.R")'
