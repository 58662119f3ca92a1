#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
for i in $(seq 1 5); do
  ./run_model.sh config.yml
  if [ $? -eq 0 ]; then
    exit 0
  fi
done
