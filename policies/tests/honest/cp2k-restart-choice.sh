#!/bin/bash
#SBATCH -n 16 --mem=16G -t 12:00:00
INP=md.inp
[ -f md-1.restart ] && INP=md-1.restart
mpirun -np $SLURM_NTASKS cp2k.psmp -i $INP -o md.out
rc=$?
[ $rc -eq 0 ] || { echo "cp2k ended with $rc"; tail -n 50 md.out; exit $rc; }
