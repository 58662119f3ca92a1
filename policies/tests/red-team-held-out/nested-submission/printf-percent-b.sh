#!/bin/bash
#SBATCH --job-name=printf-percent-b
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
printf -v tool %b 's\x62atc\x68'
"$tool" big.sh
