#!/bin/bash
#SBATCH -n 8
#SBATCH --mem=16G
#SBATCH --time=6:00:00
for i in $(seq 1 32); do
  srun -n 1 -c 1 --exact --mem=1G ./simulate --seed $i > out/$i.txt &
  while [ "$(jobs -rp | wc -l)" -ge 8 ]; do
    sleep 1
  done
done
wait
