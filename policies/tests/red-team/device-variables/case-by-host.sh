#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
case "$(hostname)" in
  node0[1-4]) export CUDA_VISIBLE_DEVICES=0 ;;
  *) export CUDA_VISIBLE_DEVICES=1,2 ;;
esac
python t.py
