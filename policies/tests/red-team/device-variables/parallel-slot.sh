#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

parallel -j 4 'CUDA_VISIBLE_DEVICES=$(({%} - 1)) python one.py --seed {}' ::: 1 2 3 4 5 6
