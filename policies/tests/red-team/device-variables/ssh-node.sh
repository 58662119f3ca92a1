#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for h in $(scontrol show hostnames); do
  ssh $h "cd $PWD; CUDA_VISIBLE_DEVICES=0 nohup python t.py > $h.log 2>&1 &"
done
