#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

parallel -j 2 sbatch {} ::: a.sh b.sh
