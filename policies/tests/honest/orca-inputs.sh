#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for inp in *.inp; do
  base=${inp%.inp}
  [ -f "$base.out" ] && grep -q "ORCA TERMINATED NORMALLY" "$base.out" && continue
  $(which orca) "$inp" > "$base.out"
done
