#!/bin/bash
#SBATCH -c 8 --mem=12G -t 5:00:00
module load julia/1.10
export JULIA_NUM_THREADS=$SLURM_CPUS_PER_TASK
export JULIA_DEPOT_PATH=$SCRATCH/.julia
julia --project=. -e 'using Pkg; Pkg.instantiate(); Pkg.precompile()'
julia --project=. -t $JULIA_NUM_THREADS src/main.jl --config conf/run1.toml
