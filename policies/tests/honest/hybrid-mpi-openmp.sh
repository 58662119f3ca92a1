#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=8 -c 4
#SBATCH --mem=16G
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
srun --mpi=pmix --cpus-per-task=$OMP_NUM_THREADS ./cp2k.psmp -i water.inp -o water.out
