#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

mpirun -np 4 sh -c 'HIP_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK ./app'
