#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

trap 'echo resubmit; sbatch $0; exit' USR1
python train.py &
wait
