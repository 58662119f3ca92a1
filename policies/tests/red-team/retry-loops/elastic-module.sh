#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python -m torch.distributed.run --nproc_per_node 2 --max_restarts 3 train.py
