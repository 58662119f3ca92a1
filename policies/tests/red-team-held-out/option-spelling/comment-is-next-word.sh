#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00 --mem-per-gpu=16G --comment --no-requeue --reservation x --hold --exclusive=user
python train.py
