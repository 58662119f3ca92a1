#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --m"em"='4'0G
python train.py
