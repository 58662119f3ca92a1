#!/bin/bash
#SBATCH --job-name=test-arith-subst
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
declare -a counts
i='counts[$(sbatch big.sh >/dev/null; echo 0)]'
echo $(( i + 1 ))
