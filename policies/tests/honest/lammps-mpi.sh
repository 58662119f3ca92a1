#!/bin/bash
#SBATCH -n 16
#SBATCH --mem-per-cpu=900M
#SBATCH -t 08:00:00
module load lammps
for T in 300 350 400; do
  mpirun -np $SLURM_NTASKS lmp -in in.diff -var T $T -log log.$T -screen none
done
