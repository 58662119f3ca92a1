#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

nsys profile -t cuda,nvtx -o prof_$SLURM_JOB_ID --force-overwrite=true python train.py --steps 50
ncu --set full -o ncu_report -k regex:gemm python one_step.py || true
