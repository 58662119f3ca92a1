#!/bin/bash
#SBATCH -a 0-11%3
#SBATCH --mem=6G
lrs=(0.1 0.01 0.001)
seeds=(1 2 3 4)
lr=${lrs[$((SLURM_ARRAY_TASK_ID % 3))]}
seed=${seeds[$((SLURM_ARRAY_TASK_ID / 3))]}
python train.py --lr $lr --seed $seed --out out/lr${lr}_s${seed}
