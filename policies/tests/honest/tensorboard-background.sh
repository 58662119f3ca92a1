#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

tensorboard --logdir runs --port 6006 --bind_all > tb.log 2>&1 &
TB_PID=$!
python train.py --logdir runs/$SLURM_JOB_ID
kill $TB_PID || true
