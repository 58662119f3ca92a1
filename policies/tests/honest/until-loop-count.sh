#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

n=1
until [ $n -gt 10 ]; do
  ./mc --block $n >> mc.log
  n=$(( n + 1 ))
done
