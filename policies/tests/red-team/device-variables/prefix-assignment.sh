#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
source ~/envs/ml/bin/activate
for fold in 0 1 2 3; do
  CUDA_VISIBLE_DEVICES=$fold python cv.py --fold $fold &
done
wait
