#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
MY_GPUS=$CUDA_VISIBLE_DEVICES
echo "got $MY_GPUS" | tee gpu.txt
python train.py --gpu-list "$MY_GPUS"
