#!/bin/bash
#SBATCH --job-name=sed-inserts-line
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
sed -i '2i export CUDA_VISIBLE_DEVICES=1' launch.sh
bash launch.sh
