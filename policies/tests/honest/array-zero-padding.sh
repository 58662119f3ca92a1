#!/bin/bash
#SBATCH --array=1-300%4
#SBATCH --mem=2G
printf -v idx '%04d' "$SLURM_ARRAY_TASK_ID"
./analyse frames/frame_$idx.png > out/$idx.json
