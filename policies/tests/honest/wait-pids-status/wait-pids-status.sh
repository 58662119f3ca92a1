#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

declare -A pids
for part in a b c d; do
  ./part.sh $part > $part.log 2>&1 &
  pids[$part]=$!
done
status=0
for part in "${!pids[@]}"; do
  if ! wait "${pids[$part]}"; then
    echo "part $part failed" >&2
    status=1
  fi
done
exit $status
