#!/bin/bash
#SBATCH --array=0-99
#SBATCH --mem=4G
python t.py $SLURM_ARRAY_TASK_ID
