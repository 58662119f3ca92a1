#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

deepspeed --include localhost:0,1 train.py --deepspeed ds.json
