#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --mem=16G --time=02:00:00
#SBATCH hetjob
#SBATCH --nodes=1 --mem=300G
srun --het-group=0,1 python train.py
