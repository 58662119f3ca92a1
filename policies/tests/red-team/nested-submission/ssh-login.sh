#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

ssh login01 "cd $PWD && sbatch next.sh"
