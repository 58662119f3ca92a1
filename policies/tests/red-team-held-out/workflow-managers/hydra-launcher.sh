#!/bin/bash
#SBATCH --job-name=hydra-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python train.py --multirun hydra/launcher=submitit_slurm hydra.launcher.partition=gpu 'seed=range(20)'
