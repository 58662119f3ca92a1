#!/bin/bash
#SBATCH --job-name=julia-pde
#SBATCH --cpus-per-task=16
#SBATCH --mem=15G
#SBATCH --time=07:00:00
#SBATCH --output=julia-%j.out

export JULIA_DEPOT_PATH="$HOME/.julia:$JULIA_DEPOT_PATH"
export JULIA_NUM_THREADS=$SLURM_CPUS_PER_TASK
export JULIA_CPU_TARGET="generic;skylake-avx512,clone_all;znver2,clone_all"

julia --project=. -e 'using Pkg; Pkg.instantiate(); Pkg.precompile()'
for n in 128 256 512; do
  /usr/bin/time -v julia --project=. --threads=$SLURM_CPUS_PER_TASK scripts/solve.jl --n=$n --out=out/n$n.jld2 2> out/n$n.time
  awk -F': ' '/Maximum resident/ {print "peak MB:", $2/1024}' out/n$n.time
done
