#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

curl --unix-socket /run/slurmrestd.sock -X POST -d @job.json http://localhost/slurm/v0.0.40/job/submit
