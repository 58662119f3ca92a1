#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python train.py
curl -s -X POST -H 'Content-type: application/json' --data "{\"text\": \"job $SLURM_JOB_ID finished\"}" "$SLACK_URL" || true
