#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

NUM=$(echo $CUDA_VISIBLE_DEVICES | tr ',' '\n' | wc -l)
python train.py --num-gpus $NUM --batch $(( 32 * NUM ))
