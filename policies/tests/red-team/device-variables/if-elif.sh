#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
if [ "$SLURM_ARRAY_TASK_ID" -lt 10 ]; then
  DEV=0
else
  DEV=1
fi
export CUDA_VISIBLE_DEVICES="$DEV"
python t.py
