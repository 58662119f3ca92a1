#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00
#SBATCH --ntasks-per-node=40 --mem-per-cpu=3000
srun ./simulate
