#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
export WANDB_MODE=offline WANDB_DIR=$SLURM_TMPDIR/wandb
mkdir -p "$WANDB_DIR"
python train.py --logger wandb --seed 1
cp -r "$WANDB_DIR" ~/wandb-offline/ || echo "could not copy wandb logs"
