#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

if sbatch --test-only next.sh 2>/dev/null; then echo would run; sbatch next.sh; fi
