#!/bin/bash
#SBATCH --job-name=read-two-words
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
read -r tool file <<< 'sbatch big.sh'
$tool "$file"
