#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

requeue() { scontrol requeue "$SLURM_JOB_ID"; exit 0; }
trap requeue USR1
python train.py &
wait
