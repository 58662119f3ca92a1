#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

i=0
for cfg in cfg/*.yaml; do
  gpu=$((i % 4)); i=$((i + 1))
  (CUDA_VISIBLE_DEVICES=$gpu python t.py --config "$cfg") &
done
wait
