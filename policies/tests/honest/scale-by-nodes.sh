#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

NP=$(( SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE ))
mpiexec -n $NP --map-by ppr:$SLURM_NTASKS_PER_NODE:node ./lbm --grid 512
