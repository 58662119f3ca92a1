#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
namd3 +p$SLURM_CPUS_PER_TASK +setcpuaffinity +devices $CUDA_VISIBLE_DEVICES prod.namd > prod.log
