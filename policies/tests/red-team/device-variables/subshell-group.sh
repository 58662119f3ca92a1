#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

mkdir -p out && ( export CUDA_VISIBLE_DEVICES=2; cd out && python ../t.py ) &
wait
