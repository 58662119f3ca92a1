#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

curl -s -H "X-SLURM-USER-TOKEN:$TOKEN" -H 'Content-Type: application/json' --data @job.json http://ctl:6820/slurm/v0.0.39/job/submit
