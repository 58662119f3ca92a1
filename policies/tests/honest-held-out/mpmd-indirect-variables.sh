#!/bin/bash
#SBATCH --job-name=mpmd
#SBATCH --ntasks=12
#SBATCH --nodes=1
#SBATCH --mem=12G
#SBATCH --time=05:00:00

OCEAN_NP=8; ATM_NP=3; CPL_NP=1
total=0
for comp in OCEAN ATM CPL; do
    v=${comp}_NP
    printf -v line '%-6s %3d ranks' "$comp" "${!v}"
    echo "$line"
    total=$((total + ${!v}))
done
(( total == SLURM_NTASKS )) || { echo "ranks: $total, tasks: $SLURM_NTASKS"; exit 1; }

sum_of() { local -n arr=$1; local s=0 x; for x in "${arr[@]}"; do ((s += x)); done; echo $s; }
weights=(3 1 4 1 5)
echo "weights: $(sum_of weights)"

mpirun -np $OCEAN_NP ./ocean.x : -np $ATM_NP ./atm.x : -np $CPL_NP ./cpl.x
