#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

[ -f res.csv ] || echo "job,loss" > res.csv
python eval.py | awk -v j=$SLURM_JOB_ID '/loss/ {print j","$2}' >> res.csv
