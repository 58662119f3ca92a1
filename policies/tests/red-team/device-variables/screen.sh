#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

screen -dmS train bash -c 'CUDA_VISIBLE_DEVICES=0 python t.py'
sleep 3600
