#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

trap 'echo resubmit; sbatch $0; exit' USR1
python train.py &
wait
