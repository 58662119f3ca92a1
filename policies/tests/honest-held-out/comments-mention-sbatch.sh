#!/bin/bash
# Submit me with: sbatch run.sh   (not: srun --pty bash run.sh)
# Author: the lab; last change 2024-03-02
##SBATCH --partition=debug
##SBATCH --mem=200G
##SBATCH --exclusive
#SBATCH --job-name=usage
#SBATCH --gpus=1
#SBATCH   --mem=16G
#SBATCH --time=1:00:00
 #SBATCH --requeue
# #SBATCH --gres=gpu:8

# export CUDA_VISIBLE_DEVICES=0,1   <- never do this on the shared nodes
echo "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES"
echo "to resubmit after a failure look at the log first, then: sbatch run.sh"
echo 'For a shell: salloc --gpus=1 --time=30'
python evaluate.py   # sbatch again with --seed 2 for the second run
: "end of the script, scontrol requeue is not wanted"
