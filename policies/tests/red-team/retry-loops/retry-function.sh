#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
retry() {
  local n=0
  until "$@"; do
    n=$((n + 1))
    [ $n -ge 5 ] && return 1
    sleep 10
  done
}
retry python train.py
