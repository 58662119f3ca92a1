#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
mpirun -np 2 ./hello || { echo "MPI is broken on $(hostname)"; exit 1; }
mpirun -np $SLURM_NTASKS ./app
