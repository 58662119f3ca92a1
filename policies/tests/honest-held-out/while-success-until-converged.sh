#!/bin/bash
#SBATCH --job-name=events
#SBATCH --mem=6G
#SBATCH --ntasks=1
#SBATCH --time=16:00:00

n=0
while ./next_event --queue events.db --out current.ev; do
    ./reconstruct current.ev "reco_$n.root"
    n=$((n + 1))
done
echo "$n events"

step=0
until python is_converged.py state.json; do
    ./advance --state state.json --steps 1000
    step=$((step + 1000))
    [ $step -le 2000000 ] || { echo "stopped at $step"; break; }
done
