#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
timeout 300 bash -c 'until nc -z localhost 30000; do sleep 2; done' || exit 1
python bench.py
