#!/bin/bash -e
#SBATCH --job-name=h2o-64
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --hint=nomultithread
#SBATCH --time=04:00:00
#SBATCH --output=h2o.%j.out

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export OMP_PLACES=cores
export OMP_PROC_BIND=close
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

srun --mpi=pmix --cpu-bind=cores \
  singularity run -B "$PWD" cp2k_2023.2.sif cp2k.psmp -i H2O-64.inp -o H2O-64.out

awk '/ENERGY\| Total FORCE_EVAL/ {e=$NF} END {print "last energy:", e}' H2O-64.out
