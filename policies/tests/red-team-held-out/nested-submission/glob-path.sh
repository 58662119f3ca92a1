#!/bin/bash
#SBATCH --job-name=glob-path
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
/usr/bin/sb[a]tc? big.sh
