#!/bin/bash
#SBATCH --job-name=numba-select
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python -c 'from numba import cuda; cuda.select_device(1); import work; work.run()'
