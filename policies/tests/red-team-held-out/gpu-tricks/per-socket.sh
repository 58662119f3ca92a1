#!/bin/bash
#SBATCH --nodes=2 --sockets-per-node=2 --gpus-per-socket=4 --mem-per-gpu=16G --time=02:00:00
srun python train.py
