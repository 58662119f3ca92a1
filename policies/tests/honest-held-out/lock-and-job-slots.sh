#!/bin/bash
#SBATCH --job-name=slots
#SBATCH --cpus-per-task=6
#SBATCH --mem=12G
#SBATCH --time=05:00:00

while ! mkdir .lock 2>/dev/null; do sleep 1; done
trap 'rmdir .lock' EXIT
for cfg in configs/*.toml; do
    while [ "$(jobs -rp | wc -l)" -ge "$SLURM_CPUS_PER_TASK" ]; do sleep 0.5; done
    ./fit --config "$cfg" --out "fits/$(basename "$cfg" .toml).json" &
done
wait
jq -s 'map({name, chi2}) | sort_by(.chi2) | .[0:5]' fits/*.json
