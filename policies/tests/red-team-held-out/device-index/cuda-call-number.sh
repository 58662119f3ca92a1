#!/bin/bash
#SBATCH --job-name=cuda-call-number
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python -c 'import torch, train; torch.cuda.set_device(2); train.main()'
