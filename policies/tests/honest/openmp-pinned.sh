#!/bin/bash
#SBATCH --cpus-per-task=32 --ntasks=1 --mem=16G --hint=nomultithread
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK OMP_PROC_BIND=close OMP_PLACES=cores
srun --cpu-bind=cores ./stream.x
