#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
NP=$(( SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE ))
mpiexec -n $NP --map-by ppr:$SLURM_NTASKS_PER_NODE:node ./lbm --grid 512
