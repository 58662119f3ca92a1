#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
me=$(readlink -f "$0")
trap 'sbatch "$me"; exit 0' USR1
python train.py --resume &
wait
