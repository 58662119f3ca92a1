#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

/usr/bin/scontrol -o update jobid=${SLURM_JOB_ID} mem=0
