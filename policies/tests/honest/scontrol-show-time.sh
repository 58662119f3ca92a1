#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

LEFT=$(squeue -h -j $SLURM_JOB_ID -o %L)
END=$(scontrol show job $SLURM_JOB_ID | grep -oP 'EndTime=\K\S+')
echo "left $LEFT, ends at $END"
python train.py --deadline "$END"
