#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

singularity run --nv --env CUDA_VISIBLE_DEVICES=1,2 model.sif
