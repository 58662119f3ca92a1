#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

parallel --colsep ',' -j 4 'python run.py --a {1} --b {2} > out/{#}.log' :::: grid.csv
