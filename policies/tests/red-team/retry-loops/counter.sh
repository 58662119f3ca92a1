#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

n=0
ok=0
while [ $n -lt 4 ] && [ $ok -eq 0 ]; do
  mpirun ./cfd case1 && ok=1
  n=$((n + 1))
done
