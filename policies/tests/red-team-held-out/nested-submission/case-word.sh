#!/bin/bash
#SBATCH --job-name=case-word
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
case $SLURM_JOB_PARTITION in
  gpu) tool=sbatch ;;
  *) tool=true ;;
esac
$tool big.sh
