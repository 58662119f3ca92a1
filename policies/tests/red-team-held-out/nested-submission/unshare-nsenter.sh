#!/bin/bash
#SBATCH --job-name=unshare-nsenter
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
unshare -r setpriv --no-new-privs chrt -b 0 sbatch big.sh
