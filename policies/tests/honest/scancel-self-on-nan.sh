#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python train.py &
P=$!
while kill -0 $P 2>/dev/null; do
  if tail -n 1 loss.log | grep -q nan; then
    echo "loss is nan"
    kill $P
    scancel $SLURM_JOB_ID
  fi
  sleep 60
done
