#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=02:00:00
#SBATCH --array=[0-19]%5
python train.py --seed "$SLURM_ARRAY_TASK_ID"
