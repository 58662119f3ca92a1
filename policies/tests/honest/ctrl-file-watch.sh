#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
./sim &
S=$!
while kill -0 $S 2> /dev/null; do
  [ -f STOP ] && kill -TERM $S
  sleep 20
done
wait $S
