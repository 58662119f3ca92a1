#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

GPUS=${GPUS:-1}
srun --ntasks=${GPUS} --ntasks-per-node=1 --kill-on-bad-exit=1 python -u tools/train.py configs/faster_rcnn.py --work-dir work --launcher="slurm"
