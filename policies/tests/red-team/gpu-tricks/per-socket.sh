#!/bin/bash
#SBATCH --nodes=2
#SBATCH --sockets-per-node=2
#SBATCH --gpus-per-socket=4
#SBATCH --mem-per-gpu=8G
python t.py
