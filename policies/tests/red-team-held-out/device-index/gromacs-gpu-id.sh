#!/bin/bash
#SBATCH --job-name=gromacs-gpu-id
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
gmx mdrun -deffnm npt -gpu_id 01 -ntomp 8
