#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python -m torch.distributed.launch --nproc_per_node 1 --master_port 12345 main.py --cfg configs/swin.yaml --data-path $DATA --batch-size 64
