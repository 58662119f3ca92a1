#!/bin/bash
#SBATCH -J ompi
#SBATCH -N 2
#SBATCH -n 8
#SBATCH --mem-per-cpu=2000
#SBATCH -t 120
#SBATCH -o ompi.%j

HF=hostfile.$SLURM_JOB_ID
for h in $(scontrol show hostnames); do echo "$h slots=4"; done > $HF
mpirun --hostfile $HF -np $SLURM_NTASKS --map-by ppr:4:node --bind-to core \
   -x LD_LIBRARY_PATH -x OMP_NUM_THREADS=1 --mca btl ^openib --mca pml ucx \
   ./wave2d -nx 4096 -ny 4096 -t 10.0
rm $HF
