#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

./sim &
S=$!
while kill -0 $S 2> /dev/null; do
  [ -f STOP ] && kill -TERM $S
  sleep 20
done
wait $S
