#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem-per-gpu=16G --time=02:00:00
#SBATCH -a1-50%0
python train.py --seed "$SLURM_ARRAY_TASK_ID"
