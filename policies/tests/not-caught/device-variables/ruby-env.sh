#!/bin/bash
#SBATCH --job-name=ruby-env
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ruby -e 'system({"CUDA_VISIBLE_DEVICES" => "1"}, "python train.py")'
