#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python train.py --seed 1 > s1.log 2>&1 & p1=$!
python train.py --seed 2 > s2.log 2>&1 & p2=$!
wait $p1 || echo "seed 1 failed"
wait $p2 || echo "seed 2 failed"
