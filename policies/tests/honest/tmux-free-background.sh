#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

python train.py --seed 1 > s1.log 2>&1 & p1=$!
python train.py --seed 2 > s2.log 2>&1 & p2=$!
wait $p1 || echo "seed 1 failed"
wait $p2 || echo "seed 2 failed"
