#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

while read -r line; do
  bash -c "$line"
done < commands.txt
