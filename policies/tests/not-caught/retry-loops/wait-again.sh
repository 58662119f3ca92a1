#!/bin/bash
#SBATCH --job-name=wait-again
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
python train.py &
wait $! || { python train.py & wait; }
