#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

if [ "$SLURM_ARRAY_TASK_ID" -lt 10 ]; then
  DEV=0
else
  DEV=1
fi
export CUDA_VISIBLE_DEVICES="$DEV"
python t.py
