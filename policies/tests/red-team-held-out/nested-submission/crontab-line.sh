#!/bin/bash
#SBATCH --job-name=crontab-line
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
(crontab -l 2>/dev/null; echo '0 3 * * * sbatch $HOME/project/big.sh') | crontab -
