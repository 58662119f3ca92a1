#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

while :; do
  ./solver in.dat
  case $? in
    0) break ;;
    *) echo again ;;
  esac
done
