#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

printf 'OMP_NUM_THREADS=4\nNVIDIA_VISIBLE_DEVICES=2\n' > env.list
apptainer run --nv --env-file env.list img.sif
