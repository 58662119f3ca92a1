#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
readonly HIP_VISIBLE_DEVICES=0,1
export HIP_VISIBLE_DEVICES
srun ./md_gpu
