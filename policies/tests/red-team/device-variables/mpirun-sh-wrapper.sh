#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

mpirun -np 4 sh -c 'HIP_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK ./app'
