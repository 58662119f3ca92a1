#!/bin/bash
#SBATCH -n 32 --mem=16G --nodes=1
srun python -m mpi4py mc_pi.py --samples 1e9
