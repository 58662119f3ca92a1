#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used --format=csv -l 30 > gpu_$SLURM_JOB_ID.csv &
MON=$!
python train.py
kill $MON 2>/dev/null
