#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

mpirun -np 2 -x CUDA_VISIBLE_DEVICES=0,1 -x LD_LIBRARY_PATH ./solver
