#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

round=0
while :; do
  ./update state round_$round
  if grep -q CONVERGED round_$round/log; then
    echo "converged after $round"
    break
  fi
  round=$((round + 1))
  [ $round -ge 50 ] && break
done
