#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python train.py --multirun hydra/launcher=submitit_slurm lr=0.1,0.2
