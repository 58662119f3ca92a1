#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

export OMP_PLACES="{0:4},{4:4}"
export GOMP_CPU_AFFINITY="0-7"
taskset -c 0-7 ./a.out
