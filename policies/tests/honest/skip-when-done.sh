#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

for cfg in configs/*.yaml; do
  name=$(basename "$cfg" .yaml)
  if [ -e "out/$name/DONE" ]; then
    echo "skip $name"
    continue
  fi
  python train.py --config "$cfg" --out "out/$name" && touch "out/$name/DONE"
done
