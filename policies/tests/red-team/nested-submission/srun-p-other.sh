#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

SLURM_JOB_ID= SLURM_JOBID= srun -p big -N 4 ./a.out
