#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

mpiexec -n 2 -genv CUDA_VISIBLE_DEVICES 0 ./solver
