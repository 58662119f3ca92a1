#!/bin/bash
#SBATCH --job-name=qsub-wrapper
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
qsub -l nodes=4:ppn=32 -l walltime=72:00:00 big.pbs
