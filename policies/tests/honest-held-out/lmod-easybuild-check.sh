#!/bin/bash
#SBATCH --job-name=modtest
#SBATCH --mem=1G
#SBATCH --time=00:10:00
[ -f /etc/profile.d/lmod.sh ] && source /etc/profile.d/lmod.sh
ml purge
for m in GCC/12.3.0 OpenMPI/4.1.5 HDF5/1.14.0-gompi-2023a; do
  if ml is-avail $m; then ml $m; else echo "no $m" >&2; fi
done
ml 2>&1 | tee modules.$SLURM_JOB_ID.txt
mpicc -show && h5pcc -showconfig | head -20
mpicc -O3 -march=native -o heat heat.c -lm && srun -n 1 ./heat 512 512 1000
