#!/bin/bash
#SBATCH --job-name=selfcon
#SBATCH --ntasks=4
#SBATCH --mem=4G
#SBATCH --time=12:00:00
#SBATCH --output=selfcon.%j

tol=1e-5; iter=0; old=0
while true; do
    iter=$((iter + 1))
    mpirun -np 4 ./density -mu "$old" -o rho.$iter > density.$iter.log || exit 1
    new=$(awk '/chemical potential/ {print $NF}' density.$iter.log)
    diff=$(awk -v a="$new" -v b="$old" 'BEGIN { d = a - b; print (d < 0) ? -d : d }')
    printf '%3d  mu = %12.8f  diff = %10.3e\n' "$iter" "$new" "$diff"
    if awk -v d="$diff" -v t="$tol" 'BEGIN { exit !(d < t) }'; then
        echo "converged after $iter iterations"
        break
    fi
    (( iter >= 50 )) && { echo "not converged"; exit 4; }
    old=$new
done
