#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=4 --mem=8G
for chain in 1 2 3 4; do
  Rscript chain.R $chain > chain$chain.log 2>&1 &
  pids[$chain]=$!
done
fail=0
for p in ${pids[*]}; do
  wait $p || let "fail+=1"
done
if [ "$fail" != "0" ]; then echo "$fail chains failed" >&2; exit 1; fi
Rscript combine.R
