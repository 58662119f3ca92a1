#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python slurm-launch.py --exp-name t --command "python t.py" --num-nodes 3
