#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

try() {
  local left=$1; shift
  while (( left-- > 0 )); do
    "$@" && return 0
  done
  return 1
}
try 5 python train.py
