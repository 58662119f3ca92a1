#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

read -r _ _ _ jid < <(sbatch next.sh)
