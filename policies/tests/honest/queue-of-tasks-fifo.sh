#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
worker() {
  while true; do
    local line
    line=$(flock tasks.lock bash -c 'head -n 1 tasks.txt; sed -i 1d tasks.txt')
    [ -z "$line" ] && break
    python one.py $line
  done
}
for w in 1 2 3; do worker & done
wait
