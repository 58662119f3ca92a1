#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

T=1000
while (( $(echo "$T > 1" | bc -l) )); do
  ./anneal --temperature $T --in state.bin --out state.bin
  T=$(echo "$T * 0.9" | bc -l)
done
