#!/bin/bash
#SBATCH --job-name=ssh-argument
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ssh -o BatchMode=yes -p 22 login1 cd project \&\& sbatch big.sh
