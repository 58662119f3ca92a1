#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
handler() { echo "resubmitting"; sbatch "${SLURM_SUBMIT_DIR}/term-trap.sh"; }
trap handler TERM
srun python train.py & wait
