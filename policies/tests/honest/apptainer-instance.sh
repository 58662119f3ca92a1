#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

apptainer instance start --nv serve.sif srv
apptainer exec instance://srv curl -s localhost:8080/ready
python client.py
apptainer instance stop srv
