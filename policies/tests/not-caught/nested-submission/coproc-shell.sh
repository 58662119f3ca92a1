#!/bin/bash
#SBATCH --job-name=coproc-shell
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
coproc SH { sh; }
echo 'sbatch big.sh' >&"${SH[1]}"
sleep 5
