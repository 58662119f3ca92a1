#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

# export CUDA_VISIBLE_DEVICES=0   <- never do this here
# old: sbatch --dependency=afterok:$JID next.sh
echo "To continue run: sbatch next.sh"
echo 'scontrol requeue is not used'
python train.py --note "submitted with sbatch by ada" --tag "cuda"
