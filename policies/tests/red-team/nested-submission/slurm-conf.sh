#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

SLURM_CONF=/tmp/slurm.conf /usr/bin/sbatch next.sh
