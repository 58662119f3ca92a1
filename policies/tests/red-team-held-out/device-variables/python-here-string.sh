#!/bin/bash
#SBATCH --job-name=python-here-string
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
gpu=1
python3 <<< "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '$gpu'; import train; train.main()"
