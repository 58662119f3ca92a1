#!/bin/bash
#SBATCH --job-name=rest-api
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
token=$(scontrol token lifespan=600 | cut -d= -f2)
curl -s -X POST -H "X-SLURM-USER-TOKEN: $token" -H 'Content-Type: application/json' \
  --data @job.json "http://slurm:6820/slurm/v0.0.40/job/submit"
