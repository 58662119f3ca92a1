#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

parallel --halt now,fail=1 -j $SLURM_CPUS_PER_TASK ./one.sh {} ::: $(seq 1 100)
