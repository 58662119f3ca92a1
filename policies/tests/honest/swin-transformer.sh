#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -m torch.distributed.launch --nproc_per_node 1 --master_port 12345 main.py --cfg configs/swin.yaml --data-path $DATA --batch-size 64
