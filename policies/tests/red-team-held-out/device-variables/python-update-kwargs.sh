#!/bin/bash
#SBATCH --job-name=python-update-kwargs
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python -c 'import os; os.environ.update(CUDA_VISIBLE_DEVICES="0", OMP_NUM_THREADS="4"); import train; train.main()'
