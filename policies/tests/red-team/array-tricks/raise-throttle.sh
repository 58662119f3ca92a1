#!/bin/bash
#SBATCH --array=0-99%2
#SBATCH --mem=4G
scontrol update ArrayTaskThrottle=50 JobId=$SLURM_ARRAY_JOB_ID
python t.py
