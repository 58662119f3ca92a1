#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=02:00:00
#SBATCH --ar=1,3,10-40:10
python train.py --seed "$SLURM_ARRAY_TASK_ID"
