#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

n=0
for f in in/*.pdb; do
  ./dock "$f" > "out/$(basename "$f" .pdb).log" &
  if (( ++n >= 4 )); then
    wait -n
    (( n-- ))
  fi
done
wait
