#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

select CUDA_VISIBLE_DEVICES in 0 1; do break; done <<< 1
export CUDA_VISIBLE_DEVICES
python t.py
