#!/bin/bash
#SBATCH --job-name=container-bind
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
apptainer exec -B /usr/bin/sbatch,/etc/slurm,/run/munge images/base.sif sbatch big.sh
