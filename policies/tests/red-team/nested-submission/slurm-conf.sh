#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

SLURM_CONF=/tmp/slurm.conf /usr/bin/sbatch next.sh
