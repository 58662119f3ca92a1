#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

seq 0 3 | xargs -I{} -P 4 env CUDA_VISIBLE_DEVICES={} python shard.py --shard {}
