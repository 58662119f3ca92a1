#!/bin/bash
#SBATCH --nodelist=gpu[01-06] --gres=gpu:2 --mem-per-gpu=16G --time=02:00:00
srun python train.py
